"""Queues of jobs and batches: from an admitted request to the worker group that runs it."""
