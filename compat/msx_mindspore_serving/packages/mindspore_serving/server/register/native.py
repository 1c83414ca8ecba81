"""Functions that the server brings, which `add_stage` finds by name."""

NATIVE = {"argmax_cpp": (1, 1)}
"""Numbers of inputs and outputs by name."""
