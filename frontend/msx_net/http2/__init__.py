"""HTTP/2 (RFC 9113) for a server, as an asyncio protocol. It knows nothing of what is said over it."""
