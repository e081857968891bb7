import pytest

from tests.helpers import nix_module


@pytest.fixture(scope="session")
def real_lib() -> str:
    """nixpkgs' own lib."""
    lib = nix_module.real_lib()
    if lib is None:
        pytest.skip(f"nixpkgs' lib is not here ({nix_module.LIB_SETTING} names no tree of it): its stand-in was used")
    return lib
