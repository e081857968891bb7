from importlib.metadata import version

from appliance.recon.engine import engine_report, installed


def test_versions_come_from_what_is_installed():
    report = engine_report()
    assert report.version == version("sglang")
    assert report.packages["torch"] == version("torch")


def test_a_package_that_is_not_installed_is_null():
    assert installed("no-such-package-anywhere") is None
