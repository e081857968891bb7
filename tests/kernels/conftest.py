import os
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the kernels' tests need torch")
ROOT = Path(__file__).parents[2] / "pkgs" / "kernels"
sys.path.insert(0, str(ROOT))


@pytest.fixture(scope="session")
def gpu():
    """A CUDA device that the library was built for, with the library loaded."""
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA GPU")
    from appliance_kernels import library, prepare

    if not library.path().exists():
        pytest.skip(f"needs the built library ({library.PATH_VARIABLE}, or build.sh)")
    prepare("cuda")
    return torch.device("cuda", torch.cuda.current_device())


@pytest.fixture
def seed():
    return int(os.environ.get("FUZZ_SEED", "20261130"))
