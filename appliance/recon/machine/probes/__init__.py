"""One probe a theme: each reads a Source and returns Findings."""
