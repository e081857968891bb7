"""Measurements: load by the engine's own load generator, results as typed cells."""
