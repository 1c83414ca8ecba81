"""The routes of text-embeddings-inference (TEI): embeddings, ranking and classification."""
