"""The models that a server starts with."""
