"""Connections, whatever protocol they speak."""
