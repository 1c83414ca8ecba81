"""Typed requests and replies: what a handler's type hints say of its bodies."""
