"""Shared memory between stages: the worker's part."""
