"""Connections that the server itself makes: which addresses they may go to."""
