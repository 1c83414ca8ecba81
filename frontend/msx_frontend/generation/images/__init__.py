"""Images of requests for text: found in messages and prompts, fetched, and checked before a worker sees them."""
