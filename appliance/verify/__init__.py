"""Proof that what runs is what was planned (identity) and that it is right (golden prompts)."""
