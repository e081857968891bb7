"""The kernels against the stock ones, in one process on one GPU: `appliance bench kernels` runs it."""
