"""From facts to decisions: who gets which GPUs and CPUs, which ports, arguments and environment, and why."""
