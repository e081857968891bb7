"""How weights are stored: one module's scheme, from the types and shapes of its tensors.

What tells the schemes apart:
  fp8        weight F8_E4M3; the scale's shape says block, channel or tensor
  mxfp8      weight F8_E4M3, scale E8M0 for 32 values of a row (OCP MX specification)
  mxfp4      two e2m1 in a byte, scale E8M0 for 32 values (OCP MX)
  nvfp4      two e2m1 in a byte, scale F8_E4M3 for 16 values and a second, F32, for the tensor (modelopt,
             compressed-tensors)
  int4/int8  compressed-tensors: weight_packed I32; GPTQ: qweight packed along the input; AWQ: along the output;
             int8 plain: weight I8 with a scale of its own type F32/BF16
"""

from typing import NamedTuple

from appliance.recon.safetensors_header import BITS, TensorInfo

PLAIN = {"BF16": "bf16", "F16": "fp16", "F32": "fp32", "F64": "fp64"}
FP8 = ("F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ")
EXPONENT_SCALES = ("F8_E8M0", "U8")
BLOCKS = (128, 32, 64, 16, 256, 512)
"""Sizes of a block, most usual first: a small matrix fits several."""
FORMAT_BITS = {
    "bf16": 16,
    "fp16": 16,
    "fp32": 32,
    "fp64": 64,
    "fp8": 8,
    "mxfp8": 8,
    "mxfp4": 4,
    "nvfp4": 4,
    "int4": 4,
    "int8": 8,
}


class Scheme(NamedTuple):
    """Format of a weight, what shares a scale, what multiplies it, and who packed it. None: nothing says."""

    format: str
    group: str | None = None
    activations: str | None = None
    packing: str | None = None

    @property
    def bits(self) -> int | None:
        return FORMAT_BITS.get(self.format)


class Stored(NamedTuple):
    """A module's scheme with the number of weights that its tensors stand for."""

    scheme: Scheme
    weights: int


UNKNOWN = Scheme("unknown")


def scheme_of(tensors: dict[str, TensorInfo], widths: frozenset[int] = frozenset()) -> Stored:
    """The scheme of a module from its tensors by role (names.py). Never raises: what fits nothing is unknown.

    `widths` are the model's own dimensions: they tell int4 from int8 where only the packed shape is known.
    """
    if "qweight" in tensors:
        return gptq_or_awq(tensors)
    if "packed" in tensors:
        return packed(tensors, widths)
    weight = tensors.get("weight")
    if weight is None:
        return Stored(UNKNOWN, 0)
    scale = tensors.get("scale")
    if weight.dtype in PLAIN:
        return Stored(Scheme(PLAIN[weight.dtype], activations=PLAIN[weight.dtype]), weight.elements)
    if weight.dtype in FP8:
        return Stored(fp8(weight, scale, tensors), weight.elements)
    if weight.dtype in ("U8", "I8", "F4"):
        return bytes_of_something(weight, scale, tensors)
    return Stored(UNKNOWN, weight.elements)


def fp8(weight: TensorInfo, scale: TensorInfo | None, tensors: dict[str, TensorInfo]) -> Scheme:
    """The scheme of a float8 weight; a scale of the input says that activations are quantised ahead of time."""
    activations = "fp8 static" if "input_scale" in tensors else "fp8 dynamic"
    if scale is None:
        return Scheme("fp8")
    if scale.elements == 1:
        return Scheme("fp8", "tensor", activations)
    rows, columns = (weight.shape[-2:] + (1, 1))[:2]
    scale_rows, scale_columns = (scale.shape[-2:] + (1, 1))[:2]
    if scale.shape[-1:] == (rows,) or (scale_rows, scale_columns) == (rows, 1):
        return Scheme("fp8", "channel", activations)
    if scale_rows == rows and scale_columns and columns % scale_columns == 0:
        group = columns // scale_columns
        return Scheme("mxfp8" if scale.dtype in EXPONENT_SCALES and group == 32 else "fp8", str(group), activations)
    block = next((size for size in BLOCKS if covers(rows, columns, scale_rows, scale_columns, size)), None)
    return Scheme("fp8", f"{block}x{block}", activations) if block else Scheme("fp8", None, activations)


def covers(rows: int, columns: int, scale_rows: int, scale_columns: int, size: int) -> bool:
    """Whether blocks of `size` x `size` need just so many scales."""
    return (-(-rows // size), -(-columns // size)) == (scale_rows, scale_columns)


def bytes_of_something(weight: TensorInfo, scale: TensorInfo | None, tensors: dict[str, TensorInfo]) -> Stored:
    """The scheme of a weight in plain bytes: two 4-bit floats a byte, or one int8. Blocks [..., groups, bytes] too."""
    if scale is None:
        return Stored(UNKNOWN, weight.elements)
    values = weight.elements if weight.dtype == "F4" else 2 * weight.elements
    group = values // scale.elements if scale.elements and values % scale.elements == 0 else None
    if group == 32 and scale.dtype in EXPONENT_SCALES:
        return Stored(Scheme("mxfp4", "32"), values)
    if group == 16 and scale.dtype in FP8:
        activations = "nvfp4 static" if "input_scale" in tensors else None
        return Stored(Scheme("nvfp4", "16", activations), values)
    if weight.dtype == "I8" and scale.dtype in PLAIN:
        per = "tensor" if scale.elements == 1 else "channel" if weight.shape[:1] == (scale.elements,) else None
        return Stored(Scheme("int8", per, "int8 static" if "input_scale" in tensors else "int8 dynamic"), values // 2)
    return Stored(UNKNOWN, weight.elements)


def packed(tensors: dict[str, TensorInfo], widths: frozenset[int]) -> Stored:
    """The scheme of compressed-tensors' weight_packed: I32 of integers, or U8 of two 4-bit floats."""
    weight, scale = tensors["packed"], tensors.get("scale")
    if weight.dtype in ("U8", "I8"):
        stored = bytes_of_something(weight, scale, tensors)
        return stored._replace(scheme=stored.scheme._replace(packing="compressed-tensors"))
    if weight.dtype != "I32" or not weight.shape:
        return Stored(UNKNOWN, weight.elements)
    words = weight.shape[-1]
    bits = next((bits for bits in (4, 8) if words * 32 // bits in widths), 4)
    columns = words * 32 // bits
    group = None
    if scale is not None and scale.shape and scale.shape[-1] and columns % scale.shape[-1] == 0:
        group = "channel" if scale.shape[-1] == 1 else str(columns // scale.shape[-1])
    return Stored(Scheme(f"int{bits}", group, packing="compressed-tensors"), weight.elements * 32 // bits)


def gptq_or_awq(tensors: dict[str, TensorInfo]) -> Stored:
    """The scheme of a qweight: GPTQ packs along the input (rows), AWQ along the output (columns)."""
    weight, scale, zeros = tensors["qweight"], tensors.get("scale"), tensors.get("zeros")
    shapes = [tensor.shape for tensor in (weight, scale, zeros) if tensor is not None]
    if len(shapes) < 2 or any(len(shape) != 2 or 0 in shape for shape in shapes) or scale is None:
        return Stored(UNKNOWN, weight.elements)
    groups, outputs = scale.shape
    if weight.shape[1] == outputs:
        bits = 32 * zeros.shape[1] // outputs if zeros is not None else 4
        inputs, packing = weight.shape[0] * 32 // max(bits, 1), "gptq"
    else:
        bits, inputs, packing = 32 * weight.shape[1] // outputs, weight.shape[0], "awq"
    group = str(inputs // groups) if groups > 1 else "channel"
    activations = PLAIN.get(scale.dtype)
    return Stored(Scheme(f"int{bits}", group, activations, packing), inputs * outputs)


def stored_bits(scheme: Scheme) -> float | None:
    """Bits of one weight with its share of the scales, as the public writers of each format store them."""
    if scheme.bits is None:
        return None
    group = int(scheme.group) if scheme.group and scheme.group.isdigit() else None
    scale = {"mxfp4": 8, "mxfp8": 8, "nvfp4": 8}.get(scheme.format, 16)
    return scheme.bits + (scale / group if group else 0)


def bits_of_type(dtype: str) -> int | None:
    """Bits of one element of a safetensors type, or None if it is none."""
    return BITS.get(dtype)
