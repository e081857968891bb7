import re

import pytest

from appliance.documents import Gpu
from appliance.hardware.gpu_model import compute_capability, gpu_model, table


@pytest.mark.parametrize(
    "name, row",
    [
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Blackwell Server Edition"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX PRO 6000 Blackwell Max-Q Workstation Edition"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 Blackwell Workstation Edition"),
        ("NVIDIA GeForce RTX 5090", "GeForce RTX 5090"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA H200 NVL", "H200 NVL"),
        ("NVIDIA GB200", "GB200"),
        ("NVIDIA B300 SXM6 AC", "B300"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB SXM"),
    ],
)
def test_a_driver_name_finds_its_own_row(name, row):
    assert gpu_model(name).name == row


@pytest.mark.parametrize(
    "name", [None, "", "NVIDIA A40", "NVIDIA GeForce RTX 5090 D", "NVIDIA H20", "NVIDIA A100-SXM4-40GB"]
)
def test_a_model_without_a_row_is_not_guessed(name):
    assert gpu_model(name) is None


def test_every_row_has_its_source_and_can_be_reached():
    for row in table():
        assert row.source and re.compile(row.match)
    assert len({row.name for row in table()}) == len(table())


def test_the_machines_own_report_wins_over_the_data_sheet():
    assert compute_capability(Gpu(index=0, name="NVIDIA H200")) == "9.0"
    assert compute_capability(Gpu(index=0, name="NVIDIA H200", compute_capability="9.1")) == "9.1"
    assert compute_capability(Gpu(index=0, name="NVIDIA A40")) is None
