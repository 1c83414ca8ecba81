"""Requests that several models answer together."""
