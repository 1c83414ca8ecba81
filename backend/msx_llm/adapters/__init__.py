"""Adapters: low-rank changes of a model's weights, chosen by each request."""
