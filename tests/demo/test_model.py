import hashlib

import pytest

from appliance.demo.model import VOCAB, byte_of_token, ensure_model, random_weights
from appliance.errors import InputError


def digest(folder) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def test_the_same_bits_everywhere(demo_model):
    assert digest(demo_model) == "fbf539395ed7926742b4a2b784ae82c46408b8d29fd46a849e4add323aff31dd"


def test_a_second_call_makes_nothing(tmp_path):
    folder = ensure_model(tmp_path)
    (folder / "mark").touch()
    assert (ensure_model(tmp_path) / "mark").exists()
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_a_few_million_parameters():
    assert 2e6 < sum(tensor.size for tensor in random_weights().values()) < 5e6


def test_only_printable_ascii_can_be_answered():
    head = random_weights()["lm_head.weight"]
    alive = [byte_of_token(token) for token in range(VOCAB) if head[token].any()]
    assert sorted(alive) == list(range(0x20, 0x7F))


def test_the_tokenizer_is_one_token_a_byte(demo_model):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(demo_model / "tokenizer.json"))
    text = "Grüße, 世界! 🙂\n\t x"
    tokens = tokenizer.encode(text).ids
    assert len(tokens) == len(text.encode())
    assert tokenizer.decode(tokens) == text
    assert byte_of_token(tokenizer.encode("a").ids[0]) == ord("a")


def test_a_cache_that_cannot_be_written():
    from pathlib import Path

    with pytest.raises(InputError, match="cache directory /proc/no: cannot be written"):
        ensure_model(Path("/proc/no"))
