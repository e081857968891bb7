"""Why it is slow: kernels of a profiler's trace by time, and how evenly a router loads its experts."""
