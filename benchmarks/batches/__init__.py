"""Batches beside requests of clients."""
