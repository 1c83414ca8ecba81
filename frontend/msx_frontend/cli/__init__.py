"""The commands that an operator types."""
