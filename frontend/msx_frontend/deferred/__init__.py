"""Requests that are answered later: `Prefer: respond-async` (RFC 7240)."""
