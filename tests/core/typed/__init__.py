"""Typed requests and replies."""
