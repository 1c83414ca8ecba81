"""Probes: whether the server and its models answer."""
