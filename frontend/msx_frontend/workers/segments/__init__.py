"""Shared memory between stages: the server passes descriptors on, and gives back what nobody reads any more."""
