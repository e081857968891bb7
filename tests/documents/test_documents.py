import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from appliance.documents import DOCUMENTS, MachineReport, Plan
from appliance.errors import InputError


def plan_data(**changes) -> dict:
    data = {
        "kind": "Plan",
        "topology": "pd",
        "model": {"path": "/models/demo", "served_name": "demo"},
        "engine": {"version": "0.5.23", "device": "cpu"},
        "workers": [
            {"name": "prefill", "role": "prefill", "port": 30010, "bootstrap_port": 30020},
            {"name": "decode", "role": "decode", "port": 30011, "bootstrap_port": 30021},
        ],
        "router": {"port": 30000, "metrics_port": 30001},
    }
    return data | changes


def with_worker(index: int, **changes) -> dict:
    data = plan_data()
    data["workers"][index] |= changes
    return data


def parse(data) -> Plan:
    return Plan.parse(json.dumps(data), where="plan.json")


def message(data) -> str:
    with pytest.raises(InputError) as error:
        parse(data)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_document_survives_writing_and_reading(tmp_path):
    plan = parse(plan_data())
    plan.write(tmp_path / "plan.json")
    assert Plan.read(tmp_path / "plan.json") == plan


def test_the_identity_is_that_of_what_runs_and_not_of_the_reasons():
    plan = parse(plan_data())
    assert parse(with_worker(0, reasons=["because"])).identity() == plan.identity()
    assert parse(plan_data(reasons=["because"])).identity() == plan.identity()
    assert parse(with_worker(0, args=["--page-size", "64"])).identity() != plan.identity()


def test_the_identity_is_the_same_in_any_order_that_changes_nothing():
    first, last = ["--page-size", "64", "--enable-metrics"], ["--enable-metrics", "--page-size", "64"]
    assert parse(with_worker(0, args=first)).identity() == parse(with_worker(0, args=last)).identity()
    twice, turned = ["--lora-paths", "a", "--lora-paths", "b"], ["--lora-paths", "b", "--lora-paths", "a"]
    assert parse(with_worker(0, args=twice)).identity() != parse(with_worker(0, args=turned)).identity()
    data = plan_data()
    assert parse(data | {"workers": data["workers"][::-1]}).identity() == parse(data).identity()


def test_an_unknown_field_is_named_with_its_place_and_the_fields_that_there_are():
    assert message(with_worker(1, prt=1)).startswith("plan.json: workers.1.prt: unknown field; expected one of args, ")
    assert "router.x: unknown field; expected one of args, env, host, metrics_port, port, reasons" in message(
        plan_data(router={"port": 1, "metrics_port": 2, "x": 3})
    )


def test_a_misspelt_field_is_reported_before_the_missing_one():
    data = plan_data()
    data["topologie"] = data.pop("topology")
    assert "topologie: unknown field" in message(data)


@pytest.mark.parametrize(
    "data, expected",
    [
        (with_worker(1, port=30010), "port 30010 is given to prefill.port and to decode.port; expected each port once"),
        (with_worker(1, port=30020), "port 30020 is given to prefill.bootstrap_port and to decode.port"),
        (with_worker(1, name="prefill", port=1), "the name 'prefill' is given 2 times"),
        (with_worker(1, name="router", port=1), "the name 'router' is given 2 times"),
        (with_worker(0, name="Pre fill"), "workers.0.name: String should match pattern"),
        (with_worker(0, port="30010"), "workers.0.port: Input should be a valid integer, found '30010'"),
        (with_worker(0, port=True), "workers.0.port: Input should be a valid integer, found True"),
        (with_worker(0, port=0), "workers.0.port: Input should be greater than or equal to 1, found 0"),
        (with_worker(0, role="aggregated"), "topology 'pd' needs at least one prefill and one decode worker"),
        (
            plan_data(router=None),
            "topology 'pd' needs at least one prefill and one decode worker, no other, and a router",
        ),
        (plan_data(topology="single"), "topology 'single' needs exactly one aggregated worker and no router"),
        (plan_data(workers=[]), "workers: List should have at least 1 item"),
        (plan_data(kind="Plans"), "kind is 'Plans'; expected 'Plan'"),
        ([], "kind is 'list'; expected 'Plan'"),
        (plan_data(schema_version=99), "schema_version: Input should be 1, found 99"),
        (plan_data(host="0.0.0.0"), "host: '0.0.0.0' is not a loopback address"),
        (plan_data(host="\x00"), "host: '\\x00' is not a loopback address"),
        (plan_data(start_timeout_s=float("inf")), "start_timeout_s: "),
        (with_worker(0, args=["a\x00b"]), "workers.0.args.0: String should match pattern"),
        (with_worker(0, env={"A=B": "1"}), "workers.0.env.A=B"),
        (with_worker(0, numa_node=-1), "workers.0.numa_node: Input should be greater than or equal to 0"),
        (with_worker(0, gpus=[-5]), "workers.0.gpus.0: Input should be greater than or equal to 0"),
        (with_worker(0, role="prefil"), "workers.0.role: Input should be 'prefill', 'decode' or 'aggregated'"),
    ],
)
def test_a_bad_plan_is_refused_in_one_line(data, expected):
    assert expected in message(data)


def test_a_gpu_belongs_to_one_worker():
    data = plan_data()
    data["workers"][0]["gpus"], data["workers"][1]["gpus"] = [0, 1], [1, 2]
    assert "GPU 1 is given to prefill and to decode; expected each GPU once" in message(data)


def test_an_unreadable_file_is_refused_in_one_line(tmp_path):
    for name, content in {"empty": b"", "binary": b"\xff\xfe\x00", "cut": b'{"kind": "Plan",'}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=name):
            Plan.read(tmp_path / name)
    with pytest.raises(InputError, match="no such file; expected a Plan document"):
        Plan.read(tmp_path / "absent")
    with pytest.raises(InputError, match="Is a directory"):
        Plan.read(tmp_path)


@pytest.mark.parametrize("text", ['{"kind": "Plan", "x": "\\ud800"}', "[" * 100_000, '{"x": ' + "9" * 5000 + "}"])
def test_json_that_python_chokes_on_is_refused(text):
    with pytest.raises(InputError, match="text: not JSON"):
        Plan.parse(text, where="text")


@given(st.text())
def test_any_text_is_parsed_or_refused(text):
    with pytest.raises(InputError):
        Plan.parse(text, where="text")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.sampled_from(sorted(plan_data())), json_values)
@example("engine", {"\n": None})
def test_any_value_of_a_field_is_accepted_or_refused_in_one_line(field, value):
    try:
        parse(plan_data(**{field: value}))
    except InputError as error:
        assert "\n" not in str(error)


def test_absent_facts_of_a_machine_are_null():
    report = MachineReport.parse('{"kind": "MachineReport", "gpus": [{"index": 0}]}', where="report")
    assert report.gpus[0].numa_node is None
    assert report.gpus[0].pcie.gen is None


def test_every_document_exports_a_json_schema_that_allows_no_other_field():
    for document in DOCUMENTS.values():
        schema = document.model_json_schema()
        assert schema["additionalProperties"] is False
        assert schema["properties"]["kind"]["const"] == document.KIND


def test_writing_is_whole_or_not_at_all(tmp_path):
    plan = parse(plan_data())
    with pytest.raises(InputError, match="cannot be written"):
        plan.write(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        (None, "http://127.0.0.1:30000"),
        ("192.0.2.7", "http://192.0.2.7:30000"),
        ("0.0.0.0", "http://127.0.0.1:30000"),
        ("::", "http://[::1]:30000"),
        ("2001:db8::7", "http://[2001:db8::7]:30000"),
    ],
)
def test_the_router_is_reached_at_its_own_address_and_workers_on_loopback(host, expected):
    plan = parse(plan_data(router={"port": 30000, "metrics_port": 30001, "host": host}))
    assert plan.endpoint() == expected
    assert plan.url(30010) == "http://127.0.0.1:30010"


def test_the_router_is_given_an_address_and_not_a_name():
    line = message(plan_data(router={"port": 30000, "metrics_port": 30001, "host": "gpu-box"}))
    assert line == ("plan.json: router.host: 'gpu-box' is not an address; expected one such as 0.0.0.0 or 192.0.2.7")


def test_a_name_that_is_no_text_does_not_keep_a_document_from_being_written(tmp_path):
    report = MachineReport(gpus=[], hostname="half \ud800, a file \udcff, é")
    assert '"half ?, a file ?, é"' in report.to_json()
    report.write(tmp_path / "report.json")
    assert MachineReport.read(tmp_path / "report.json").hostname == "half ?, a file ?, é"
