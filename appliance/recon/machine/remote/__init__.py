"""A machine far away: one ssh round trip, one POSIX shell script, one framed text."""
