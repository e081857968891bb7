"""The machine: its report from here, from far away, or from pasted text."""

from appliance.recon.machine.report import machine_report

__all__ = ["machine_report"]
