import os
import socket

import pytest

from appliance.errors import InputError
from appliance.preflight.ports import require_free


def test_free_ports_are_accepted(make_plan):
    require_free(make_plan("pd"))


def test_a_port_in_use_is_reported_with_its_holder_and_what_it_was_wanted_for(make_plan):
    plan = make_plan("pd")
    with socket.socket() as other:
        other.bind(("127.0.0.1", plan.workers[1].bootstrap_port))
        other.listen()
        with pytest.raises(InputError) as error:
            require_free(plan)
    message = str(error.value)
    assert message.startswith(f"port {plan.workers[1].bootstrap_port} (decode.bootstrap_port) is in use by ")
    assert message.endswith(f"(pid {os.getpid()}); expected it free")


def test_the_nccl_port_must_be_free_on_every_address(make_plan):
    plan = make_plan("single")
    with socket.socket() as other:
        other.bind(("127.0.0.2", plan.workers[0].nccl_port))
        other.listen()
        with pytest.raises(InputError, match="single.nccl_port"):
            require_free(plan)


def test_an_address_of_another_machine_cannot_be_bound(make_plan):
    with pytest.raises(InputError, match="cannot be bound on 192.0.2.1"):
        require_free(make_plan("pd").model_copy(update={"host": "192.0.2.1"}))
