"""Every public checkpoint of the corpus against the facts beside it (skipped where the corpus is not here).

No weights are in the corpus, so formats come from the configuration. Where facts say more than that (`note`s such as
"config.json still targets it as FP8: wrong"), what the configuration says is what is asserted; EXCEPTIONS names them.
"""

import json
import os
import re
from pathlib import Path

import pytest
import yaml

from appliance.errors import InputError
from appliance.recon.model.claims import claims_in, reconcile
from appliance.recon.model.configuration import shape_of
from appliance.recon.model.declared import declared
from appliance.recon.model.folder import read_folder
from appliance.recon.model.mtp import mtp_of
from appliance.recon.model.names import Place, Places, split_role
from appliance.recon.model.report import report_on
from tests.conftest import CORPUS_SETTING

FOLDER = Path(os.environ.get(CORPUS_SETTING) or "corpus-is-absent") / "models"
NAMES = sorted(path.name for path in FOLDER.glob("*") if (path / "facts.yaml").is_file())
NO_MODEL = {name for name in NAMES if name.startswith(("11-", "42-"))}
"""Configurations that name no architecture: refused, each in words."""
REPORTED = [name for name in NAMES if name not in NO_MODEL]
EXCEPTIONS = {
    ("08-", "compressor"): "fp8",
    ("08-", "indexer"): "fp8",
}
"""(checkpoint, component): what the configuration says where the facts know from the tensors that it is wrong."""
COMPONENT_OF = {
    "embed": "embedding",
    "lm_head": "head",
    "vision_tower": "vision",
    "engram_tables": "engram",
    "full_attention": "attention",
    "attention_q_a_q_b_kv_a_kv_b": "attention",
    "attention_o_proj": "attention",
    "dense_layer_0": "dense_mlp",
    "dense_layers_0_1_2": "dense_mlp",
    "indexer_weights_proj": "indexer",
    "indexers_proj": "indexer",
}
ONE_MODULE = {"attention_o_proj": "o_proj", "indexer_weights_proj": "weights_proj", "indexers_proj": "weights_proj"}

pytestmark = pytest.mark.usefixtures("corpus")


def facts_of(name: str) -> dict:
    return yaml.safe_load((FOLDER / name / "facts.yaml").read_text())


def report_of(name: str):
    return report_on(read_folder(FOLDER / name))


def format_of(words: str) -> str:
    """ "fp8" of "fp8 e4m3 block", "nvfp4" of "nvfp4 (e2m1, ...)"."""
    found = re.match(r"(mxfp4|nvfp4|fp8|int4|int8|bf16|fp16)", words)
    assert found, words
    return found[1]


def entries_for(report, key: str) -> list:
    """The report's entries that a component of the facts speaks of."""
    component = COMPONENT_OF.get(key, key)
    entries = [entry for entry in report.quantisation if entry.component == component]
    if key in ONE_MODULE:
        entries = [entry for entry in entries if ONE_MODULE[key] in (entry.example or "")]
    elif key == "attention_q_a_q_b_kv_a_kv_b":
        entries = [entry for entry in entries if "o_proj" not in (entry.example or "")]
    elif component == "indexer":
        entries = entries[:1]  # the largest; its weights_proj is a fact of its own
    elif component == "linear_attention":
        entries = entries[:1]  # without the two small gates, which no list of the facts mentions
    return entries


def test_there_is_a_corpus():
    assert len(REPORTED) >= 40


@pytest.mark.parametrize("name", REPORTED)
def test_shape(name):
    report, facts = report_of(name), facts_of(name)["architecture"]
    assert report.architecture == facts["architectures"][0]
    assert report.model_type == facts["model_type"]
    assert (report.layers, report.hidden_size, report.heads) == (facts["layers"], facts["hidden"], facts["heads"])
    assert report.kv_heads == facts["kv_heads"]
    assert report.context_length == facts["context"]
    if facts["head_dim"] is not None:
        assert report.head_dim == facts["head_dim"]
    if facts["layer_types"] is not None:
        assert report.attention.layers == {
            kind.removesuffix("_attention"): count for kind, count in facts["layer_types"].items()
        }


@pytest.mark.parametrize("name", REPORTED)
def test_quantisation_of_each_component(name):
    report, facts = report_of(name), facts_of(name)["quantisation"]
    plain = facts_of(name)["architecture"]["dtype"]
    for key, expected in facts["components"].items():
        entries = entries_for(report, key)
        if expected == "unknown":
            assert {entry.format for entry in entries} == {"unknown"}, key
            continue
        if key in ("vision_tower", "mtp", "mamba"):
            continue  # vision shapes are not computed; all three have tests of their own
        assert entries, key
        form = EXCEPTIONS.get((name[:3], key), format_of(expected["format"]))
        assert {entry.format for entry in entries} == {form}, key
        if (name[:3], key) in EXCEPTIONS:
            continue
        assert {entry.bits for entry in entries} == {expected["bits"]}, key
        group = expected["group"]
        if group is not None:
            assert {entry.group for entry in entries} == {str(group)}, key
        elif "per-tensor" in expected["format"]:
            assert {entry.group for entry in entries} == {"tensor"}, key
        activations = expected["activations"]
        if activations in (None, "unknown", "n/a (lookup)", "bf16 or fp8 (engine chooses)"):
            continue
        words = {entry.activations for entry in entries}
        first = activations.split()[0]
        if first == "bf16" and plain == "float16":
            first = "fp16"  # the facts write bf16 beside an fp16 head
        assert {word.split()[0] for word in words} == {first}, key
        for when in ("static", "dynamic"):
            if when in activations:
                assert all(when in word for word in words), key


@pytest.mark.parametrize("name", REPORTED)
def test_kv_cache_type(name):
    said = facts_of(name)["quantisation"]["kv_cache"]
    expected = "fp8" if said.startswith("fp8") else None
    assert said.startswith(("fp8", "none declared"))
    assert report_of(name).kv_cache.declared_dtype == expected


@pytest.mark.parametrize("name", REPORTED)
def test_mtp_layers(name):
    report, facts = report_of(name), facts_of(name)["mtp"]
    key = facts["key"]
    assert report.mtp.declared_key == (key.rpartition(".")[2] if key else None)
    assert (report.mtp.declared or 0) == (facts["declared"] or 0)
    if facts["real"] is not None and not name.startswith("57-"):  # 57 declares one and has none: only tensors tell
        assert (report.mtp.count or 0) == facts["real"]


@pytest.mark.parametrize("name", REPORTED)
def test_experts(name):
    report, facts = report_of(name), facts_of(name)["moe"]
    if facts is None:
        assert report.experts is None
        return
    assert (report.experts.routed, report.experts.top_k) == (facts["routed_experts"], facts["topk"])
    if facts["shared_experts"] is not None:
        assert report.experts.shared == facts["shared_experts"]
    if facts["leading_dense_layers"] is not None:
        assert report.experts.dense_layers == facts["leading_dense_layers"]


@pytest.mark.parametrize("name", REPORTED)
def test_attention(name):
    report, words = report_of(name), facts_of(name)["attention"]
    attention = report.attention
    if words.startswith("compressed sparse"):
        assert attention.kind == "V4-compressed"
        assert (attention.sliding_window, attention.index_topk) == (128, int(re.search(r"top-(\d+)", words)[1]))
    elif "DSA" in words:
        assert attention.kind == "DSA"
    elif "MLA" in words:
        assert attention.kind == "MLA"
    elif "MHA" in words:
        assert attention.kind == "MHA"
    else:
        assert attention.kind == "GQA"
    heads = re.search(r"(?:GQA|MHA) (\d+)/(\d+)", words)
    if heads:
        assert (report.heads, report.kv_heads) == (int(heads[1]), int(heads[2]))
    rank = re.search(r"kv_lora(?:_rank)? (\d+)", words)
    if rank:
        assert attention.latent_dim == int(rank[1])
    for count, kind in re.findall(r"(\d+) (?:KDA |Gated DeltaNet )?(linear|full)", words):
        assert attention.layers[kind] == int(count)


@pytest.mark.parametrize("name", [name for name in REPORTED if (FOLDER / name / "index-metadata.json").is_file()])
def test_bytes_computed_from_the_configuration_come_close_to_the_index(name):
    size = json.loads((FOLDER / name / "index-metadata.json").read_text()).get("metadata", {}).get("total_size")
    if size is None:
        pytest.skip("this index's total size was not reported")
    # what a configuration does not tell: norms, hyper-connections, drafting heads, V4.1's vision tower
    assert report_of(name).weight_bytes == pytest.approx(size, rel=0.02)


@pytest.mark.parametrize("name", [name for name in REPORTED if (FOLDER / name / "index-metadata.json").is_file()])
def test_mtp_layers_from_the_tensors_of_the_index(name):
    """The index itself is not kept, but how many tensors each MTP layer has is."""
    counts = json.loads((FOLDER / name / "index-metadata.json").read_text()).get("mtp_tensors")
    if counts is None:
        pytest.skip("the tensors of MTP layers were not reported")
    shape = shape_of(json.loads((FOLDER / name / "config.json").read_text()), name)
    places, found = Places(shape), {}
    for prefix, count in counts.items():
        for number in range(count):
            layer = places.of(split_role(f"{prefix}.ffn.experts.{number}.w1.weight")[0]).mtp
            found[layer] = found.get(layer, 0) + 1
    mtp = mtp_of(shape, found)
    assert (mtp.count, mtp.basis, mtp.tensors) == (facts_of(name)["mtp"]["real"], "tensor names", counts)


def test_an_inference_configuration_is_refused_by_name():
    name = next(name for name in NO_MODEL if name.startswith("11-"))
    with pytest.raises(InputError, match="DeepSeek's own inference code.*expected the model's config.json"):
        report_of(name)


def test_a_configuration_that_is_only_quantization_is_refused_but_can_be_read():
    name = next(name for name in NO_MODEL if name.startswith("42-"))
    with pytest.raises(InputError, match="no architectures"):
        report_of(name)
    said = declared(json.loads((FOLDER / name / "config.json").read_text()), None)
    ((_, every_linear, scheme),) = said.groups
    assert every_linear
    assert scheme[:3] == ("int8", "channel", "int8 dynamic")


def has_vision(name: str) -> bool:
    facts = facts_of(name)["quantisation"]["components"].get("vision_tower")
    return isinstance(facts, dict) and facts["bits"] is not None


@pytest.mark.parametrize("name", [name for name in REPORTED if has_vision(name)])
def test_vision_towers(name):
    facts = facts_of(name)["quantisation"]["components"]["vision_tower"]
    checkpoint = read_folder(FOLDER / name)
    said = declared(checkpoint.config, checkpoint.quant_file)
    place = Place("vision", "replicated", None, "vision")
    for module in ("vision_tower.encoder.blocks.0.wqkv", "model.visual.blocks.0.attn.qkv"):
        assert said.scheme_of(module, place).format == format_of(facts["format"])


def named(start: str) -> str:
    return next(name for name in NAMES if name.startswith(start))


def test_mamba_layers_that_stay_bf16_are_told_from_the_others():
    """49: in_proj and out_proj of 17 of 23 layers are nvfp4; those of 6, and every conv1d, are bf16."""
    modules = {
        entry.format: entry.modules for entry in report_of(named("49-")).quantisation if entry.component == "mamba"
    }
    assert modules == {"nvfp4": 2 * 17, "bf16": 2 * 6 + 23}


@pytest.mark.parametrize(
    "start, formats",
    [
        ("04-", {"mxfp4", "fp8", "bf16"}),
        ("08-", {"bf16"}),
        ("09-", {"bf16"}),
        ("16-", {"bf16"}),
        ("27-", {"bf16"}),
        ("35-", {"bf16"}),
        ("37-", {"bf16"}),
    ],
)
def test_formats_of_mtp_layers(start, formats):
    assert {entry.format for entry in report_of(named(start)).quantisation if entry.component == "mtp"} == formats


@pytest.mark.parametrize(
    "start, words",
    [
        ("02-", "num_nextn_predict_layers says 1, the compress_ratios show 3"),
        ("03-", "197 GB are n-gram"),
        ("04-", "expert_dtype still says fp4"),
        ("09-", "name layers that do not exist, first layers.44"),
        ("16-", "config.json holds no quantization_config: only hf_quant_config.json tells"),
        ("33-", "config.json holds no quantization_config: only hf_quant_config.json tells"),
        ("48-", "no list of excluded modules"),
    ],
)
def test_what_disagrees_is_said(start, words):
    assert any(words in remark for remark in report_of(named(start)).remarks)


@pytest.mark.parametrize(
    "start, claim, verdict, words",
    [
        ("04-", "nvfp4", "agrees in part", "attention fp8 128x128"),
        ("08-", "mtp", "agrees in part", "stored as bf16: not as the rest of the name reads (w4a16, fp8)"),
        ("33-", "nvfp4", "agrees", "attention nvfp4 16"),
        ("37-", "nvfp4", "agrees in part", "weight-only"),
        ("57-", "nomtp", "unknown", "only tensor names decide"),
    ],
)
def test_names_against_content(start, claim, verdict, words):
    part = next(part for part in report_of(named(start)).claims if part.claim == claim)
    assert part.verdict == verdict
    assert words in part.words


def test_expert_width_that_tensor_parallelism_cuts_within_a_block():
    ranks = {rank.tp: rank for rank in report_of(named("31-")).ranks}
    assert not any("expert width" in remark for remark in ranks[4].remarks)
    assert any("expert width 1536 / 8 is no multiple of the 128" in remark for remark in ranks[8].remarks)


def test_the_names_of_a_broken_rename():
    """57: a sample of names from an early run: no MTP, plain attention, and names that a rename broke."""
    folder = FOLDER / named("57-")
    lines = (folder / "tensor-names.txt").read_text().splitlines()
    tensors = [line for line in lines if re.fullmatch(r"[a-z][\w.]+\.(weight|weight_packed|weight_scale)", line)]
    shape = shape_of(json.loads((folder / "config.json").read_text()), "57")
    places = Places(shape)
    assert not any(places.of(split_role(name)[0]).mtp for name in tensors)
    assert any(name.endswith(".weight.weight") for name in tensors)
    assert {places.of(split_role(name)[0]).component for name in tensors if name.endswith("_packed")} == {
        "routed_experts"
    }
    assert mtp_of(shape, {}).count == 0
    report = report_of(folder.name)
    (verdict,) = reconcile(claims_in("nomtp"), report.quantisation, mtp_of(shape, {}))
    assert verdict.verdict == "agrees"
