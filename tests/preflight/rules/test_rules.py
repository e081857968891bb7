"""Every rule, once where it must fire and once where it must not."""

import pytest

from appliance.preflight.catalogue import catalogue
from appliance.preflight.evaluate import apply
from tests.helpers.healthy import both, facts
from tests.preflight.rules.cases import CASES

STATIC = {id: rule for id, rule in catalogue().items() if not any(need.startswith("probes") for need in rule.needs)}
SPECULATING = facts(plan=both("--speculative-algorithm", "EAGLE", "--speculative-num-steps", "1"))
"""The healthy plan drafts nothing: rules about drafts look at one that does, within every bound."""


def test_every_rule_has_a_case():
    assert CASES.keys() == STATIC.keys()


@pytest.mark.parametrize("id", CASES)
def test_fires(id):
    changed, words = CASES[id]
    result = apply(STATIC[id], changed)
    assert result.status == "finding", result
    assert any(words in finding.evidence for finding in result.findings), result.findings
    assert all(finding.fix for finding in result.findings)


@pytest.mark.parametrize("id", STATIC)
def test_is_ok_on_the_healthy_machine(id):
    result = apply(STATIC[id], SPECULATING if id.startswith("speculation-") else facts())
    assert result.status == "ok", result


@pytest.mark.parametrize("id", STATIC)
def test_without_any_document_nothing_is_ok(id):
    result = apply(STATIC[id], facts(machine=None, engine=None, model=None, plan=None))
    assert result.status == "not checked"
    assert result.missing and "needs " in result.reason


@pytest.mark.parametrize("id", STATIC)
def test_says_what_why_and_what_to_do(id):
    rule = STATIC[id]
    assert rule.title and rule.fix and rule.reference and rule.needs
    assert len(rule.why) > 40 and rule.why.endswith((".", "it.", "first.")), rule.why
