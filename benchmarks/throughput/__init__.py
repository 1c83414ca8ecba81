"""Requests and events per second."""
