"""Parsers of text that people paste: pure functions, in time linear in its size."""
