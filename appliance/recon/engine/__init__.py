"""The engine that is installed here: versions at once, and all that `recon engine` finds (`full`)."""

from appliance.recon.engine.versions import engine_report, installed

__all__ = ["engine_report", "installed"]
