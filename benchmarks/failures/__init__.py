"""Clients' experience when they leave, when a worker dies and when a queue is full."""
