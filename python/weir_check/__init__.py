"""Weir's second checker: proves the plans of a .weir file from docs/certificate.md alone.

It shares no code with `weir verify`, and needs Python's standard library alone.
"""
