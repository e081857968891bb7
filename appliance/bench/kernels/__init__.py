"""Kernels side by side on this machine's GPU."""
