"""Certificates of the listeners and of their clients, read again when they change."""
