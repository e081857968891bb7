"""Topologies under load, side by side: what is asked, one repetition, its limits, the rounds, the record."""
