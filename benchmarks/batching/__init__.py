"""The benchmark `batching`."""
