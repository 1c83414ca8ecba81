"""Endpoints that installed packages bring."""
