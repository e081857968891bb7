"""CUDA's driver API by ctypes: it is on every machine that has GPUs, and ready in a second, where torch takes many.

Names, arguments and the _v2 of functions are those of cuda.h (NVIDIA, CUDA driver API reference).
"""

import ctypes
from functools import cache

from appliance.preflight.gpu.device import Buffer, Copy

PAGE = 4096
HANDLE_BYTES = 64
ALREADY_ENABLED = 704
LAZY_PEER_ACCESS = 1


class IpcHandle(ctypes.Structure):
    """CUipcMemHandle."""

    _fields_ = [("reserved", ctypes.c_ubyte * HANDLE_BYTES)]


class CudaDriver:
    """The GPUs that CUDA shows this process. Raises RuntimeError where the driver cannot be loaded or initialised."""

    def __init__(self) -> None:
        try:
            self._cuda = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise RuntimeError(str(error)) from None
        self._call("cuInit", 0)
        self._contexts: dict[int, ctypes.c_void_p] = {}

    def _call(self, function: str, *arguments: object) -> None:
        code = getattr(self._cuda, function)(*arguments)
        if code != 0:
            name = ctypes.c_char_p()
            self._cuda.cuGetErrorName(code, ctypes.byref(name))
            raise RuntimeError(f"{function}: {(name.value or b'').decode() or code}")

    def _use(self, gpu: int) -> ctypes.c_void_p:
        """Make the GPU's primary context current, as torch and the engines use it."""
        if gpu not in self._contexts:
            number, context = ctypes.c_int(), ctypes.c_void_p()
            self._call("cuDeviceGet", ctypes.byref(number), gpu)
            self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
            self._contexts[gpu] = context
        self._call("cuCtxSetCurrent", self._contexts[gpu])
        return self._contexts[gpu]

    @cache  # noqa: B019 - one driver a process, which ends with it
    def name(self, gpu: int) -> str:
        text = ctypes.create_string_buffer(100)
        number = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(number), gpu)
        self._call("cuDeviceGetName", text, 100, number)
        return text.value.decode(errors="replace")

    def allocate(self, gpu: int, size: int) -> Buffer:
        self._use(gpu)
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return Buffer(gpu, address.value, size)

    def fill(self, buffer: Buffer, byte: int) -> None:
        self._use(buffer.gpu)
        self._call("cuMemsetD8_v2", ctypes.c_uint64(buffer.address), ctypes.c_ubyte(byte), ctypes.c_size_t(buffer.size))
        self._call("cuCtxSynchronize")

    def holds(self, buffer: Buffer, byte: int) -> bool:
        self._use(buffer.gpu)
        length = min(PAGE, buffer.size)
        seen = ctypes.create_string_buffer(length)
        for offset in (0, buffer.size - length):
            self._call("cuMemcpyDtoH_v2", seen, ctypes.c_uint64(buffer.address + offset), ctypes.c_size_t(length))
            if seen.raw != bytes([byte]) * length:
                return False
        return True

    def reach(self, gpu: int, other: int) -> bool:
        if gpu == other:
            return True
        one, two, can = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(one), gpu)
        self._call("cuDeviceGet", ctypes.byref(two), other)
        self._call("cuDeviceCanAccessPeer", ctypes.byref(can), one, two)
        if not can.value:
            return False
        target = self._use(other)
        self._use(gpu)
        return self._cuda.cuCtxEnablePeerAccess(target, 0) in (0, ALREADY_ENABLED)

    def seconds(self, copies: list[Copy]) -> list[float]:
        streams = [self._prepared(copy) for copy in copies]
        for copy, (stream, begin, finish) in zip(copies, streams, strict=True):
            self._use(copy.by)
            self._call("cuEventRecord", begin, stream)
            for _ in range(copy.times):
                self._enqueue(copy, stream)
            self._call("cuEventRecord", finish, stream)
        taken = []
        for copy, (stream, begin, finish) in zip(copies, streams, strict=True):
            self._use(copy.by)
            self._call("cuEventSynchronize", finish)
            milliseconds = ctypes.c_float()
            self._call("cuEventElapsedTime", ctypes.byref(milliseconds), begin, finish)
            taken.append(milliseconds.value / 1000)
            self._call("cuEventDestroy_v2", begin)
            self._call("cuEventDestroy_v2", finish)
            self._call("cuStreamDestroy_v2", stream)
        return taken

    def _prepared(self, copy: Copy) -> tuple[ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]:
        """A stream with two events on the GPU that copies; the copy has been done once."""
        self._use(copy.source.gpu), self._use(copy.target.gpu), self._use(copy.by)
        stream, begin, finish = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuStreamCreate", ctypes.byref(stream), 1)  # CU_STREAM_NON_BLOCKING
        self._call("cuEventCreate", ctypes.byref(begin), 0)
        self._call("cuEventCreate", ctypes.byref(finish), 0)
        self._enqueue(copy, stream)
        self._call("cuStreamSynchronize", stream)
        return stream, begin, finish

    def _enqueue(self, copy: Copy, stream: ctypes.c_void_p) -> None:
        target, source = ctypes.c_uint64(copy.target.address), ctypes.c_uint64(copy.source.address)
        size = ctypes.c_size_t(copy.source.size)
        if copy.source.gpu == copy.target.gpu:
            self._call("cuMemcpyDtoDAsync_v2", target, source, size, stream)
            return
        contexts = self._contexts[copy.target.gpu], self._contexts[copy.source.gpu]
        self._call("cuMemcpyPeerAsync", target, contexts[0], source, contexts[1], size, stream)

    def export(self, buffer: Buffer) -> bytes:
        self._use(buffer.gpu)
        handle = IpcHandle()
        self._call("cuIpcGetMemHandle", ctypes.byref(handle), ctypes.c_uint64(buffer.address))
        return bytes(handle.reserved)

    def open(self, gpu: int, handle: bytes, size: int) -> Buffer:
        self._use(gpu)
        address = ctypes.c_uint64()
        opened = IpcHandle.from_buffer_copy(handle)
        self._call("cuIpcOpenMemHandle_v2", ctypes.byref(address), opened, LAZY_PEER_ACCESS)
        return Buffer(gpu, address.value, size)
