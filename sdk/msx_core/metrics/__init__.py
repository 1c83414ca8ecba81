"""Metrics of a handler, on their way to the server."""
