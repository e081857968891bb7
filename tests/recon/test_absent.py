from importlib.metadata import version
from pathlib import Path

import pytest

from appliance.errors import InputError
from appliance.recon.absent import Absent, in_words


def error_of(call) -> Exception:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("it does not fail")


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: version("no-such-package"), "no-such-package is not installed"),
        (lambda: Path("/no/such/file").stat(), "/no/such/file: No such file or directory"),
        (lambda: (_ for _ in ()).throw(Absent("the reason")), "the reason"),
        (lambda: (_ for _ in ()).throw(InputError("what was expected")), "what was expected"),
        (lambda: (_ for _ in ()).throw(TimeoutError("nvcc not back within 3 s")), "nvcc not back within 3 s"),
        (lambda: {}["gone"], "KeyError: 'gone'"),
    ],
)
def test_a_reason_reads_as_words_and_a_fault_of_the_program_names_its_kind(call, words):
    assert in_words(error_of(call)) == words
