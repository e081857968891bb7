import subprocess
import sys
import time

from tests.helpers.cli import appliance


def seconds(*words: str) -> float:
    """The fastest of five runs of `python WORDS`."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, *words], capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def test_help_takes_at_most_three_times_what_click_and_rich_take():
    assert seconds("-m", "appliance", "--help") <= 3 * seconds("-c", "import click, rich")


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from appliance.cli import cli; cli.main(['--help'], standalone_mode=False);"
        "print(sorted({'torch', 'sglang', 'pydantic', 'httpx', 'numpy'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_verb_has_a_help_and_is_listed_with_one_line():
    from appliance.cli import VERBS

    listing = appliance("--help").stdout
    for verb, line in VERBS.items():
        assert f"{verb} " in listing and line in " ".join(listing.split())
        assert appliance(verb, "--help").returncode == 0
