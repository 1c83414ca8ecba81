"""Callbacks: URLs that are told when a job has ended."""
