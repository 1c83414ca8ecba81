"""Workflows: graphs of models and functions that answer a request together."""
