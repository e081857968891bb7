import pytest

from appliance.errors import InputError
from appliance.recon.model.folder import read_folder
from appliance.recon.model.report import report_on
from tests.helpers import checkpoints as made

MIB = 1 << 20


@pytest.fixture
def checkpoint(tmp_path):
    tensors = made.moe_tensors(made.fp8_block, made.fp8_block)
    return read_folder(made.write_checkpoint(tmp_path, made.moe_config(), tensors))


def rank(checkpoint, tp: int, ep: int = 1):
    (found,) = report_on(checkpoint, layouts=[(tp, ep)]).ranks
    return found


def test_the_usual_layouts(checkpoint):
    report = report_on(checkpoint)
    assert [(rank.tp, rank.ep) for rank in report.ranks] == [(1, 1), (2, 1), (4, 1), (8, 1)]
    assert report.ranks[0].bytes == report.weight_bytes


def test_what_is_split_and_what_is_on_every_rank(tmp_path):
    tensors = {
        "lm_head.weight": ("BF16", [1024, 512]),  # 1 MiB, split
        "model.layers.0.mlp.gate.weight": ("BF16", [1024, 512]),  # on every rank
        "model.layers.0.self_attn.k_proj.weight": ("BF16", [1024, 512]),  # 2 heads: split in two at most
        "model.layers.0.mlp.experts.0.up_proj.weight": ("BF16", [1024, 512]),
        "model.norm.weight": ("BF16", [512]),
    }
    checkpoint = read_folder(made.write_checkpoint(tmp_path, made.moe_config(), tensors))
    assert rank(checkpoint, 2).bytes == MIB + MIB // 2 * 3 + 1024
    assert rank(checkpoint, 8).bytes == MIB + MIB // 2 + MIB // 8 * 2 + 1024
    assert "2 KV heads on 8 ranks: K and V are kept 4 times" in rank(checkpoint, 8).remarks


def test_experts_that_do_not_come_out_even_fill_one_rank_more(tmp_path):
    tensors = {f"model.layers.0.mlp.experts.{n}.up_proj.weight": ("BF16", [1024, 512]) for n in range(3)}
    checkpoint = read_folder(made.write_checkpoint(tmp_path, made.moe_config() | {"num_experts": 3}, tensors))
    assert rank(checkpoint, 2, 2).bytes == 2 * MIB
    assert "3 experts do not divide by 2" in rank(checkpoint, 2, 2).remarks


def test_blocks_that_tensor_parallelism_would_cut(checkpoint):
    assert not any("expert width" in remark for remark in rank(checkpoint, 4).remarks)
    (remark,) = [remark for remark in rank(checkpoint, 8).remarks if "expert width" in remark]
    assert remark.startswith("expert width 512 / 8 is no multiple of the 128 of fp8 128x128")
    assert not any("expert width" in remark for remark in rank(checkpoint, 8, 4).remarks)


def test_heads_that_do_not_divide(checkpoint):
    assert "8 heads do not divide by 3: engines refuse" in rank(checkpoint, 3).remarks


@pytest.mark.parametrize("tp, ep", [(4, 3), (2, 4), (0, 1)])
def test_impossible_layouts(checkpoint, tp, ep):
    with pytest.raises(InputError, match="expected ep to divide tp"):
        rank(checkpoint, tp, ep)
