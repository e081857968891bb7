"""What is scraped is there, and what the dashboard draws is published by the installed engine and router."""

import json
import re
import sysconfig
from pathlib import Path

import pytest

from tests.helpers.nix_module import PROJECT, evaluate, example

DASHBOARD = json.loads((PROJECT / "nix/monitoring/dashboard.json").read_text())
PACKAGES = Path(sysconfig.get_path("purelib"))


def expressions() -> list[str]:
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


def test_every_worker_and_the_router_are_scraped_with_labels():
    scraped = json.loads(evaluate(example("pd-8-gpus"), "etc")["sglang-appliance/prometheus.json"])["scrape_configs"]
    found = {job["job_name"]: job["static_configs"][0] for job in scraped}
    assert {name: part["targets"] for name, part in found.items()} == {
        "sglang-decode": ["127.0.0.1:30010"],
        "sglang-prefill": ["127.0.0.1:30011"],
        "sglang-router": ["127.0.0.1:30001"],
    }
    assert found["sglang-decode"]["labels"] == {"model": "deepseek-v4-flash", "role": "decode", "worker": "decode"}


def test_without_monitoring_workers_publish_nothing():
    found = evaluate(example("pd-8-gpus", "monitoring.enable = false;"), "etc")
    assert list(found) == ["sglang-appliance/plan.json"]
    assert "--enable-metrics" not in found["sglang-appliance/plan.json"]


def test_panels_do_not_overlap():
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in DASHBOARD["panels"]]
    assert len(set(places)) == len(places)


def test_the_engine_publishes_what_is_drawn():
    engine = PACKAGES / "sglang/srt/observability"
    if not engine.is_dir():
        pytest.skip("SGLang is not installed")
    published = {name for file in engine.rglob("*.py") for name in re.findall(r'"(sglang:\w+)"', file.read_text())}
    drawn = {name for expression in expressions() for name in re.findall(r"sglang:\w+", expression)}
    assert len(drawn) > 10
    assert {re.sub(r"_(bucket|sum|count)$", "", name) for name in drawn} <= published


def test_the_router_publishes_what_is_drawn():
    libraries = list((PACKAGES / "smg").glob("*.so"))
    if not libraries:
        pytest.skip("smg is not installed")
    drawn = {name.encode() for expression in expressions() for name in re.findall(r"smg_\w+", expression)}
    assert drawn and all(name in libraries[0].read_bytes() for name in drawn)
