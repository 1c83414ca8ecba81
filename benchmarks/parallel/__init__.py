"""The benchmark `parallel`."""
