"""Number of this protocol, which the interpreter of workers is asked for before it runs any."""

PROTOCOL_VERSION = 1
"""Raised, for a release, by each change of a message or of its meaning (tests/project/test_protocol_version.py)."""
