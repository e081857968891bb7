import pytest

from appliance.documents import Gpu, MachineReport
from appliance.errors import InputError
from appliance.plan.select import select
from tests.helpers.gpu_machines import RTX, machine


def indices(report: MachineReport, **wanted) -> list[int]:
    return [gpu.index for gpu in select(report, **wanted).gpus]


def test_all_of_one_kind_are_taken():
    chosen = select(machine([0, 0, 1, 1]))
    assert [gpu.index for gpu in chosen.gpus] == [0, 1, 2, 3]
    assert (chosen.name, chosen.compute_capability, chosen.memory_bytes) == (RTX, "12.0", 97887 * 1024**2)
    assert chosen.remarks == []


def test_of_two_kinds_the_one_with_more_memory_in_all_is_taken_and_the_other_is_named():
    mixed = MachineReport(
        gpus=[
            Gpu(index=0, name="NVIDIA GeForce RTX 5090", memory_mib=32607),
            Gpu(index=1, name="NVIDIA GeForce RTX 4090", memory_mib=24564),
            Gpu(index=2, name="NVIDIA GeForce RTX 4090", memory_mib=24564),
        ]
    )
    chosen = select(mixed)
    assert [gpu.index for gpu in chosen.gpus] == [1, 2]
    assert "GPU 0 (NVIDIA GeForce RTX 5090) left out: all ranks of a worker wait for the slowest" in chosen.remarks[0]


def test_a_gpu_that_mig_divides_is_left_out_and_a_machine_of_such_is_refused():
    divided = machine([0, 0])
    divided = divided.model_copy(
        update={"gpus": [divided.gpus[0].model_copy(update={"mig_enabled": True}), divided.gpus[1]]}
    )
    assert indices(divided) == [1]
    with pytest.raises(InputError, match="no whole GPU to plan with: GPU 0 is left out: MIG divides it"):
        select(machine([0], mig_enabled=True))


def test_only_the_gpus_that_are_asked_for():
    assert indices(machine([0] * 4), only=[1, 3]) == [1, 3]
    with pytest.raises(InputError, match="no GPU 7; expected some of 0, 1"):
        select(machine([0, 0]), only=[7])


def test_a_text_without_names_needs_one_and_memory_comes_from_its_data_sheet():
    bare = machine([0, 1], name=None, memory_mib=None)
    with pytest.raises(InputError, match="the memory of GPU 0 is not known.*--gpu NAME"):
        select(bare)
    with pytest.raises(InputError, match="no data sheet of 'NVIDIA A40' at hand"):
        select(bare, called="NVIDIA A40")
    chosen = select(bare, called=RTX)
    assert chosen.memory_bytes == pytest.approx(95.6 * 1024**3, rel=1e-3)
    assert "by its data sheet" in chosen.remarks[0]


def test_gpus_that_the_driver_does_not_show_are_told():
    seven = machine([0] * 3).model_copy(update={"gpus_without_driver": ["0000:c1:00.0"]})
    assert select(seven).remarks == ["on the bus, but not shown by the driver, so not used: 0000:c1:00.0"]
