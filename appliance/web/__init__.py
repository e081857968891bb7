"""The look that the report and the live page share: one page, no request to anybody, light and dark."""
