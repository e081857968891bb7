"""SGLang on NVIDIA GPUs: what it must be told, and how it divides their memory."""
