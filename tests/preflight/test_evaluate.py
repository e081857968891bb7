"""The rules' machine: what is known, what is not, what does not apply, what was left out."""

import pytest

from appliance.documents.machine import Gpu, KernelSettings
from appliance.errors import InputError
from appliance.preflight.catalogue import catalogue, find
from appliance.preflight.conditions import GPUS
from appliance.preflight.evaluate import apply, evaluate
from appliance.preflight.facts import Facts, missing
from appliance.preflight.rule import Found, Undecided, rule
from appliance.recon.machine.pasted import report_from
from tests.helpers.healthy import facts, gpu, machine, with_gpu


def made(check, needs=("machine.gpus[].bar1_mib",), only_if=()):
    return rule("made-up", "A rule of this test", "error", needs=needs, fix="do it", reference="none", only_if=only_if)(
        check
    )


def never(facts):
    """Finds nothing."""
    return []


def test_a_null_for_some_elements_is_not_ok():
    result = apply(made(never), with_gpu(3, bar1_mib=None))
    assert result.status == "not checked"
    assert result.missing == ["machine.gpus[3].bar1_mib"]
    assert result.reason == "needs machine.gpus[].bar1_mib"


def test_a_finding_among_known_elements_is_one_whatever_the_others_are():
    result = apply(made(lambda facts: ["GPU 0"]), with_gpu(3, bar1_mib=None))
    assert result.status == "finding" and result.missing == ["machine.gpus[3].bar1_mib"]


def test_the_reason_of_the_report_is_passed_on():
    report = machine(iommu=None, sources={"iommu": "absent: no PCI bus in sysfs"})
    result = apply(made(never, ["machine.iommu.groups[].type"]), facts(machine=report))
    assert result.reason == "needs machine.iommu (no PCI bus in sysfs)"


def test_an_empty_list_is_known_unless_its_report_says_that_it_was_not_looked_for():
    assert missing(Facts(machine=machine(links=[])), "machine.links") == ([], True)
    report = machine(links=[], sources={"links": "absent: not in the text"})
    assert missing(Facts(machine=report), "machine.links") == (["machine.links"], False)
    assert missing(Facts(machine=report), "machine.links[].kind") == (["machine.links"], False)


def test_of_alternatives_one_is_enough():
    need = "machine.iommu|machine.kernel_settings.cmdline"
    without = machine(iommu=None)
    assert missing(Facts(machine=without), need) == ([], True)
    neither = machine(iommu=None, kernel_settings=KernelSettings())
    assert missing(Facts(machine=neither), need) == (["machine.iommu", "machine.kernel_settings.cmdline"], False)


def test_a_document_that_was_not_given_is_said_to_be_missing():
    result = apply(made(never), Facts())
    assert (result.status, result.reason) == ("not checked", "needs machine (no such document was given)")


def test_what_does_not_apply_says_why_and_is_no_ok():
    result = apply(made(never, only_if=[GPUS]), facts(machine=machine(gpus=[])))
    assert (result.status, result.reason) == ("does not apply", "the machine has no NVIDIA GPU")


def test_a_condition_whose_facts_are_missing_leaves_the_rule_unchecked():
    report = machine(gpus=[], sources={"gpus": "absent: not in the text"})
    assert apply(made(never, only_if=[GPUS]), facts(machine=report)).status == "not checked"


def test_a_check_that_cannot_decide_names_the_fact_that_would():
    def check(facts):
        """Cannot tell."""
        yield from ()
        raise Undecided("machine.iommu")

    assert apply(made(check), facts()).missing == ["machine.iommu"]


def test_a_check_that_fails_is_not_ok_and_does_not_end_the_others():
    def check(facts):
        """Fails."""
        raise ZeroDivisionError("by zero")

    results = evaluate([made(check), made(never)], facts())
    assert [result.status for result in results] == ["not checked", "ok"]
    assert "ZeroDivisionError" in results[0].reason


def test_findings_are_sorted_by_severity():
    result = apply(made(lambda facts: [Found("mild", severity="note"), "grave"]), facts())
    assert [finding.evidence for finding in result.findings] == ["grave", "mild"]
    assert [finding.severity for finding in result.findings] == ["error", "note"]


def test_evidence_that_quotes_a_hostile_report_stays_one_line():
    changed = with_gpu(0, name="NVIDIA\n\x1b[2JH200")
    (result,) = evaluate([find("gpus-unlike")], changed)
    assert "NVIDIA??[2JH200" in result.findings[0].evidence


def test_a_rule_that_is_left_out_records_the_reason():
    (result,) = evaluate([find("bar1-small")], with_gpu(0, bar1_mib=256), {"bar1-small": "no peer access wanted"})
    assert (result.status, result.reason, result.findings) == ("skipped", "no peer access wanted", [])


def test_a_new_rule_is_a_new_file_and_nothing_else(tmp_path, monkeypatch):
    from appliance.preflight import rules

    (tmp_path / "new_theme.py").write_text(
        "from appliance.preflight.rule import rule\n"
        '@rule("brand-new", "t", "note", needs=["machine"], fix="f", reference="r")\n'
        'def check(facts):\n    """Why."""\n    yield facts.machine.hostname\n'
    )
    monkeypatch.setattr(rules, "__path__", [*rules.__path__, str(tmp_path)])
    catalogue.cache_clear()
    try:
        assert apply(find("brand-new"), facts()).findings[0].evidence == "reference"
    finally:
        catalogue.cache_clear()


def test_an_unknown_rule_is_refused_with_those_like_it():
    with pytest.raises(InputError, match="bar1-small"):
        find("bar-small")


def test_ids_are_words_with_dashes():
    assert all(id == id.lower() and all(part.isalnum() for part in id.split("-")) for id in catalogue())


def test_a_text_without_links_leaves_rules_about_links_unchecked():
    lines = [f"GPU {index}: NVIDIA H200 (UUID: GPU-2e71a14e-50fb-5ddc-b64e-9d7a4e7e100{index})" for index in (0, 1)]
    report = report_from("\n".join(lines).encode(), "text")
    assert apply(find("nvlink-uneven"), Facts(machine=report)).status == "not checked"


@pytest.mark.parametrize("cpus", ["0-99999999999", "abc", "5-1", "0--3"])
def test_a_saved_report_with_an_absurd_cpu_list_is_survived(cpus):
    report = machine(gpus=[gpu(0, cpu_affinity=cpus)], cpus_allowed=cpus)
    results = evaluate(catalogue().values(), facts(machine=report))
    assert [result for result in results if "failed" in (result.reason or "")] == []


def test_a_gpu_of_which_nothing_is_known_is_survived():
    results = evaluate(catalogue().values(), facts(machine=machine(gpus=[Gpu(index=0), Gpu(index=1)], links=[])))
    assert [result for result in results if "failed" in (result.reason or "")] == []
