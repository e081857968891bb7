"""smg, the router in front of SGLang workers (prefill/decode pairs and replicas)."""
