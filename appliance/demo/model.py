"""The demo's model: a few million random weights from a fixed seed, made on the spot and kept in the cache.

It is a Llama in shape (grouped-query attention, SwiGLU, RMSNorm, RoPE), so that the engine runs it
through its ordinary path; it knows nothing. Its weights are scaled so that the best token is rarely
close to the second best: greedy decoding then gives the same tokens whatever the batch.
"""

import json
import tempfile
from pathlib import Path

from appliance.errors import InputError

SEED = 20261130
VERSION = 1  # in the folder's name: raise it when anything below changes what is made
LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FFN, CONTEXT = 4, 256, 8, 4, 32, 768, 8192
BYTES = 256
BOS, EOS = BYTES, BYTES + 1
VOCAB = BYTES + 2
LOGIT_STD = 4.0

CHAT_TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}> {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant> {% endif %}"
)


def ensure_model(cache_dir: Path) -> Path:
    """Return the folder of the demo's model below `cache_dir`, making it on the first call (under a second).

    The folder appears whole or not at all: it is written beside its place and then renamed. Raises InputError
    when the cache cannot be written.
    """
    folder = cache_dir / f"demo-model-v{VERSION}"
    if folder.is_dir():
        return folder
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".demo-model-", dir=cache_dir) as scratch:
            made = Path(scratch) / folder.name
            made.mkdir()
            write_model(made)
            made.rename(folder)
    except OSError as error:
        if not folder.is_dir():  # otherwise another demo was faster
            raise InputError(f"cache directory {cache_dir}: cannot be written ({error.strerror or error})") from None
    return folder


def write_model(folder: Path) -> None:
    """Write configuration, tokenizer and weights (float32 safetensors) into the existing `folder`."""
    (folder / "config.json").write_text(json.dumps(configuration(), indent=2) + "\n")
    (folder / "generation_config.json").write_text(json.dumps({"bos_token_id": BOS, "eos_token_id": EOS}) + "\n")
    write_tokenizer(folder)
    from safetensors.numpy import save_file

    save_file(random_weights(), folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)


def configuration() -> dict:
    """The model's config.json, as transformers writes it for a Llama."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float32",
        "vocab_size": VOCAB,
        "hidden_size": HIDDEN,
        "intermediate_size": FFN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "pad_token_id": EOS,
    }


def alphabet() -> list[str]:
    """The characters that stand for the 256 bytes in a byte-level tokenizer, in the order of their tokens."""
    from tokenizers import pre_tokenizers

    return sorted(pre_tokenizers.ByteLevel.alphabet())


def byte_of_token(token: int) -> int | None:
    """The ASCII byte that `token` stands for; None for other bytes and for the special tokens.

    A byte-level tokenizer writes printable ASCII as itself and the space as "Ġ" (U+0120).
    """
    characters = alphabet()
    if token >= len(characters):
        return None
    character = characters[token]
    return 0x20 if character == "Ġ" else ord(character) if character.isascii() else None


def write_tokenizer(folder: Path) -> None:
    """Write a byte-level tokenizer (one token a UTF-8 byte, no merges) with a chat template."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    vocabulary = {character: token for token, character in enumerate(alphabet())}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<s>", special=True), AddedToken("</s>", special=True)])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "pad_token": "</s>",
        "model_max_length": CONTEXT,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


def random_weights() -> dict:
    """The tensors by name, float32: every projection keeps the scale of what it is given."""
    import numpy as np

    random = np.random.Generator(np.random.PCG64(SEED))

    def matrix(rows: int, columns: int, gain: float = 1.0):
        return (random.standard_normal((rows, columns)) * (gain / columns**0.5)).astype(np.float32)

    ones = np.ones(HIDDEN, dtype=np.float32)
    tensors = {"model.embed_tokens.weight": random.standard_normal((VOCAB, HIDDEN)).astype(np.float32)}
    for layer in range(LAYERS):
        name = f"model.layers.{layer}"
        tensors |= {
            f"{name}.input_layernorm.weight": ones,
            f"{name}.self_attn.q_proj.weight": matrix(HEADS * HEAD_DIM, HIDDEN, gain=2.0),
            f"{name}.self_attn.k_proj.weight": matrix(KV_HEADS * HEAD_DIM, HIDDEN, gain=2.0),
            f"{name}.self_attn.v_proj.weight": matrix(KV_HEADS * HEAD_DIM, HIDDEN, gain=2.0),
            f"{name}.self_attn.o_proj.weight": matrix(HIDDEN, HEADS * HEAD_DIM, gain=2.0),
            f"{name}.post_attention_layernorm.weight": ones,
            f"{name}.mlp.gate_proj.weight": matrix(FFN, HIDDEN),
            f"{name}.mlp.up_proj.weight": matrix(FFN, HIDDEN),
            f"{name}.mlp.down_proj.weight": matrix(HIDDEN, FFN),
        }
    tensors["model.norm.weight"] = ones
    # A logit of zero never wins: answers are printable ASCII, one character a token, of the length asked for,
    # so that equal text is equal tokens in every API, streamed or not.
    printable = np.array([byte_of_token(token) in range(0x20, 0x7F) for token in range(VOCAB)])
    tensors["lm_head.weight"] = matrix(VOCAB, HIDDEN, gain=LOGIT_STD) * printable[:, None].astype(np.float32)
    return tensors
