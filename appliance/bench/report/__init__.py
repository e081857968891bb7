"""Records as one HTML page that opens offline, and its pictures as SVG."""
