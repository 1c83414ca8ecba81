"""Keeps the ranks of a parallel group in step: rank 0 leads."""
