"""Live probes, one a file: whatever module here holds a PROBE is run, in a process of its own and under a watchdog."""
