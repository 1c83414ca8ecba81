"""Functions that the server brings, which `add_stage` finds by name."""

NATIVE = {"argmax_cpp": (1, 1)}
"""By name: the numbers of inputs and outputs."""
