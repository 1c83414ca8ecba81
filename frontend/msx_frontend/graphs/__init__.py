"""Requests that several models answer together: the stages of one model, or the nodes of a workflow."""
