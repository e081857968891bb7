"""Benchmarks of the kernels against the stock ones, in one process on one GPU: `python -m appliance_kernels.bench`."""
