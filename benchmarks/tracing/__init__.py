"""The cost of traces."""
