"""Weir's second checker: proves the plans of a .weir file by docs/certificate.md alone.

It makes the page's claims about plans, and leaves those about code to `weir verify`, with which it shares no code.
It needs nothing but Python's standard library.
"""
