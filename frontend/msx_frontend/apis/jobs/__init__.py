"""Requests that were deferred."""
