"""Against what CUDA's occupancy calculator gives."""

import pytest

from appliance.bench.profile.occupancy import blocks_per_sm, occupancy
from appliance.documents import ProfiledGpu

H200 = ProfiledGpu(
    name="NVIDIA H200", compute_capability="9.0", multiprocessors=132, threads_per_sm=2048, registers_per_sm=65536,
    shared_bytes_per_sm=233472,
)  # fmt: skip
RTX = H200.model_copy(
    update={"compute_capability": "12.0", "multiprocessors": 188, "threads_per_sm": 1536, "shared_bytes_per_sm": 102400}
)


@pytest.mark.parametrize(
    "gpu, threads, registers, shared, blocks, full",
    [
        (H200, 256, 32, 0, 8, 1.0),
        (H200, 128, 255, 0, 2, 0.125),
        (H200, 32, 16, 0, 32, 0.5),  # no more than 32 blocks
        (H200, 384, 168, 227 * 1024, 1, 0.1875),
        (H200, 128, 144, 0, 3, 0.1875),  # a quarter's registers hold 3 warps, not 3.5
        (RTX, 1024, 32, 0, 1, 2 / 3),
        (RTX, 128, 128, 99 * 1024, 1, 1 / 12),
        (RTX, 512, 40, 0, 3, 1.0),  # as Kineto itself writes it for such a kernel (activeBlocksPerMultiprocessor)
        (RTX, 33, 32, 0, 24, 1.0),  # a started warp is a whole one
    ],
)
def test_blocks_of_an_sm(gpu, threads, registers, shared, blocks, full):
    resident = blocks_per_sm(gpu, threads, registers, shared)
    assert resident == blocks
    assert occupancy(gpu, threads, resident) == pytest.approx(full)


def test_what_does_not_fit_or_is_not_known():
    assert blocks_per_sm(RTX, 128, 32, 200 * 1024) == 0
    assert blocks_per_sm(RTX, 128, None, 0) is None
    assert blocks_per_sm(RTX.model_copy(update={"compute_capability": "99.0"}), 128, 32, 0) is None
    assert occupancy(RTX, 128, 0) is None
