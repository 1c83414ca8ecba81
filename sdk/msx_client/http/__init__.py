"""Calls over HTTP."""
