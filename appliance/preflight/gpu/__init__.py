"""GPUs as probes use them: CUDA's driver API without torch, and a simulated device for tests."""
