import pytest

from appliance.documents import ArchGate
from appliance.engines.sglang.recon.capability import Evaluator
from appliance.engines.sglang.recon.gates import base_evaluator, gates_of, predicates
from appliance.engines.sglang.recon.source import SourceFile, SourceTree
from appliance.recon.engine.arch import Arch

COMMON = """
is_new_supported = is_new = lru_cache(maxsize=1)(
    partial(check, device_capability_majors=[10, 11, 12], cuda_version=(12, 8))
)


@lru_cache(maxsize=1)
def is_exact() -> bool:
    '''Only this one.'''
    return is_cuda() and torch.cuda.get_device_capability() == (12, 0)
"""


def source(tmp_path, text: str) -> SourceFile:
    (tmp_path / "m.py").write_text(text)
    return SourceFile(tmp_path / "m.py", "m.py")


def gates_in(tmp_path, text: str) -> dict[str, ArchGate]:
    arch = Arch(12, 0)
    known = predicates(source(tmp_path, COMMON), Evaluator(arch))
    return {gate.code: gate for gate in gates_of(source(tmp_path, text), Evaluator(arch, known, {"is_new": True}))}


@pytest.mark.parametrize("arch, new, exact", [((9, 0), False, False), ((12, 0), True, True), ((12, 1), True, False)])
def test_predicates_are_read_from_lists_of_majors_and_from_returned_tests(tmp_path, arch, new, exact):
    found = predicates(source(tmp_path, COMMON), Evaluator(Arch(*arch)))
    assert found == {"is_new_supported": new, "is_new": new, "is_exact": exact}


def test_conditions_name_their_line_their_function_and_what_they_come_to(tmp_path):
    found = gates_in(
        tmp_path, "def f(x):\n    if x and is_new():\n        pass\n    elif not is_exact():\n        pass\n"
    )
    assert found["x and is_new()"].model_dump() == {
        "where": "m.py:2", "within": "f", "kind": "condition", "code": "x and is_new()", "value": None,
    }  # fmt: skip
    assert found["not is_exact()"].value is False


def test_names_and_attributes_that_hold_the_capability_are_followed(tmp_path):
    found = gates_in(
        tmp_path,
        "major, minor = torch.cuda.get_device_capability()\n"
        "class A:\n"
        "    def __init__(self):\n"
        "        self.wide = major >= 10\n"
        "    def f(self, major_heads):\n"
        "        return 1 if self.wide else 2\n"
        "    def g(self):\n"
        "        assert minor == 0 and major_heads > 1\n",
    )
    assert found["self.wide"].value is True
    assert found["minor == 0 and major_heads > 1"].value is None
    assert "major_heads > 1" not in found


def test_a_name_that_is_bound_to_different_things_is_not_followed(tmp_path):
    found = gates_in(tmp_path, "flag = is_new()\nflag = is_new() and not is_exact()\nif flag:\n    pass\n")
    assert "flag" not in found


def test_the_platform_is_asked_by_its_own_names(tmp_path):
    assert gates_in(tmp_path, "if get_platform().is_new:\n    pass\n")["get_platform().is_new"].value is True


def test_what_is_no_gate_is_left_out(tmp_path):
    assert gates_in(tmp_path, "if x.major == 12 or is_hip() or sm:\n    pass\ny = f()\n") == {}


@pytest.fixture(scope="module")
def tree() -> SourceTree:
    return SourceTree.installed("sglang")


def test_blackwell_is_also_sm_120_in_the_installed_source(tree):
    on_120, on_121 = (base_evaluator(tree, Arch(12, minor)) for minor in (0, 1))
    assert on_120.platform["is_blackwell"] is True and on_120.platform["is_sm100"] is False
    assert on_120.platform["is_sm120"] is on_121.platform["is_sm120"] is True
    assert (on_120.predicates["is_sm120"], on_121.predicates["is_sm120"]) == (True, False)
    assert base_evaluator(tree, Arch(10, 0)).platform["is_blackwell"] is True


def test_gates_of_the_installed_model_hook(tree):
    evaluator = base_evaluator(tree, Arch(12, 0))
    found = {gate.where: gate for gate in gates_of(tree.file("srt/arg_groups/model_hook.py"), evaluator)}
    assert found["sglang/srt/arg_groups/model_hook.py:482"].code == "get_platform().is_sm120"
    common = {gate.where: gate for gate in gates_of(tree.file("srt/utils/common.py"), evaluator)}
    assert common["sglang/srt/utils/common.py:304"].code.startswith("is_sm120_supported = ")
    assert common["sglang/srt/utils/common.py:304"].value is True
