"""Batches: files whose lines are requests, run while clients that wait leave room."""
