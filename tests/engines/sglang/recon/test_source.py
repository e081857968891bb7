import ast

import pytest

from appliance.engines.sglang.recon.source import SourceFile, SourceTree, Unknown


def source(tmp_path, text: str) -> SourceFile:
    (tmp_path / "m.py").write_text(text)
    return SourceFile(tmp_path / "m.py", "pkg/m.py")


NESTED = """
def outer(x):
    if x == 1:
        a()
    elif x == 2:
        b()
    else:
        c() if x else d()

    class Inner:
        def method(self):
            if x:
                e()
"""


def paths(found: SourceFile) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Where each call stands, by the name of what is called."""
    calls = [placed for placed in found.placed if isinstance(placed.node, ast.Call)]
    return {call.node.func.id: (call.within, call.under) for call in calls}


def test_each_node_has_its_definition_and_the_conditions_on_its_way(tmp_path):
    assert paths(source(tmp_path, NESTED)) == {
        "a": ("outer", ("x == 1",)),
        "b": ("outer", ("else x == 1", "x == 2")),
        "c": ("outer", ("else x == 1", "else x == 2", "x")),
        "d": ("outer", ("else x == 1", "else x == 2", "else x")),
        "e": ("outer.Inner.method", ("x",)),
    }


def test_nodes_come_in_the_order_of_the_text(tmp_path):
    lines = [placed.node.lineno for placed in source(tmp_path, NESTED).placed if isinstance(placed.node, ast.Call)]
    assert lines == sorted(lines)


def test_a_definition_is_found_by_its_qualified_name_also_within_if_and_try(tmp_path):
    found = source(tmp_path, "try:\n    if x:\n        class A:\n            def f(self): pass\nexcept E:\n    pass\n")
    assert found.where(found.definition("A.f")) == "pkg/m.py:4"
    with pytest.raises(Unknown, match="has no A.g any more"):
        found.definition("A.g")


@pytest.mark.parametrize("content", [b"def f(:", b"\xff\xfe", b"x = '\x00'", b"(" * 500])
def test_what_is_no_python_is_unknown(tmp_path, content):
    (tmp_path / "m.py").write_bytes(content)
    with pytest.raises(Unknown, match="pkg/m.py is not"):
        SourceFile(tmp_path / "m.py", "pkg/m.py")


def test_a_file_or_package_that_is_not_there_is_unknown(tmp_path):
    with pytest.raises(Unknown, match="gone.py is not in the installed source"):
        SourceTree(tmp_path).file("gone.py")
    with pytest.raises(Unknown, match="no_such_package is not installed"):
        SourceTree.installed("no_such_package")


def test_nothing_of_the_package_is_imported(tmp_path, monkeypatch):
    (tmp_path / "explosive").mkdir()
    (tmp_path / "explosive" / "__init__.py").write_text("raise SystemExit(1)")
    monkeypatch.syspath_prepend(tmp_path)
    assert SourceTree.installed("explosive").root == tmp_path / "explosive"


GUARDED = """
def overrides(cfg):
    if not new():
        return {}
    if cfg.a:
        raise ValueError
    elif cfg.b:
        for item in cfg.items:
            if item.skip:
                continue
            mark = item
    if cfg.c:
        return 1
    elif cfg.d:
        return 2
    if cfg.e:
        pass
    else:
        return 3
    return last
"""


def test_what_a_text_has_passed_are_the_tests_whose_branch_returns_before_it(tmp_path):
    (tmp_path / "m.py").write_text(GUARDED)
    found = {
        ast.unparse(placed.node): [("" if holds else "else ") + ast.unparse(test) for holds, test in placed.passed]
        for placed in SourceFile(tmp_path / "m.py", "m.py").placed
        if isinstance(placed.node, ast.Return | ast.Assign)
    }
    assert found["return {}"] == []
    assert found["mark = item"] == ["else not new()", "else item.skip"]
    assert found["return last"] == ["else not new()", "else cfg.c", "else cfg.d", "cfg.e"]
