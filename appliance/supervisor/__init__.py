"""A whole plan on this machine without systemd: start, watch, stop, report, recover."""
