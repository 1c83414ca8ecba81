"""Listeners: they bind, accept, choose the protocol of a connection, and stop."""
