"""Servers that take turns under the same load."""
