"""Attacks of strangers and clients on a server: kinds on every listener, and on every route and method of
the lists of families and services."""
