"""One machine with many GPUs as one serving appliance: recon, plan, preflight, launch, deploy, verify, bench."""

__version__ = "0.1.0"
