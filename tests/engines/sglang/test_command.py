import pytest

from appliance.engines.sglang.command import FIELD_OF_FLAG, command, environment
from appliance.errors import InputError


def value_of(words: list[str], flag: str) -> str:
    return words[words.index(flag) + 1]


def test_fields_become_flags(make_plan):
    plan = make_plan("pd")
    decode = plan.worker("decode")
    words = command(plan, decode)
    assert value_of(words, "--port") == str(decode.port)
    assert value_of(words, "--disaggregation-mode") == "decode"
    assert value_of(words, "--disaggregation-bootstrap-port") == str(decode.bootstrap_port)
    assert value_of(words, "--host") == "127.0.0.1"
    assert words[-len(decode.args) :] == decode.args


def test_an_aggregated_worker_disaggregates_nothing(make_plan):
    plan = make_plan("single")
    assert not [word for word in command(plan, plan.workers[0]) if word.startswith("--disaggregation")]


@pytest.mark.parametrize("flag", [*sorted(FIELD_OF_FLAG), "--hos", "--served", "--nccl"])
@pytest.mark.parametrize("form", ["{} 1", "{}=1"])
def test_an_argument_that_a_field_sets_is_refused(make_plan, flag, form):
    plan = make_plan("single")
    worker = plan.workers[0].model_copy(update={"args": form.format(flag).split()})
    with pytest.raises(InputError, match=f"worker single: {flag} in args; expected it in the plan's field"):
        command(plan, worker)


def test_every_flag_of_a_plan_is_one_of_the_engine(make_plan):
    from appliance.engines.sglang.identity import flags

    known = engine_flags()
    for topology in ("pd", "replicas", "single"):
        plan = make_plan(topology)
        for worker in plan.workers:
            assert {flag for flag, _ in flags(command(plan, worker))} <= known


def engine_flags() -> set[str]:
    """The options of the installed SGLang, asked in a process of its own since it imports torch."""
    import os
    import subprocess
    import sys

    from appliance.engines.sglang import cpu

    code = (
        "import argparse; from sglang.srt.server_args import ServerArgs; p = argparse.ArgumentParser();"
        "ServerArgs.add_cli_args(p); print('\\n'.join(s for a in p._actions for s in a.option_strings))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=os.environ | cpu.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_the_cpu_engine_is_refused_beside_a_gpu(make_plan, monkeypatch):
    monkeypatch.setattr("appliance.engines.sglang.cpu.glob.glob", lambda pattern: ["/dev/nvidia0"])
    plan = make_plan("single")
    with pytest.raises(InputError, match="engine.device is 'cpu' on a machine with NVIDIA devices"):
        environment(plan, plan.workers[0])
