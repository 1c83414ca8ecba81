"""Durable records of requests, in `store.db` of the state folder."""
