"""Cohere's API: chat and embeddings of its second version, tokens of its first."""
