"""Workflows: a graph of models and functions that answers a request as one."""
