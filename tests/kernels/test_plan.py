"""The spread of a launch: from shapes, within what the device runs at once."""

import pytest
from appliance_kernels.plan import MAX_SPLITS, Device, Plan, plan, tiles

H200 = Device(16, 32, (132, 66, 30, 15, 7))  # as the library reports it there for 16 heads
NO_CLUSTERS = Device(16, 32, (188, 0, 0, 0, 0))


def test_a_tile_never_spans_both_caches():
    assert [tiles(128, extra, 32) for extra in (0, 1, 32, 33, 512)] == [4, 5, 5, 6, 20]


@pytest.mark.parametrize("device", [H200, NO_CLUSTERS])
@pytest.mark.parametrize("rows", [1, 2, 3, 8, 16, 64, 132, 500])
@pytest.mark.parametrize("tile_count", [1, 4, 20, 260])
def test_all_blocks_run_at_once_where_rows_allow_it(device, rows, tile_count):
    chosen = plan(rows, tile_count, device)
    assert 1 <= chosen.splits <= MAX_SPLITS
    if chosen != Plan(1, 1):
        assert rows * chosen.splits <= device.clusters[chosen.cluster.bit_length() - 1]


def test_plans_that_measured_best_on_an_h200():
    batches = (1, 2, 4, 8, 16, 32, 64)
    best = [Plan(16, 1), Plan(16, 1), Plan(16, 1), Plan(8, 1), Plan(4, 1), Plan(2, 2), Plan(2, 1)]
    assert [plan(batch, 20, H200) for batch in batches] == best
