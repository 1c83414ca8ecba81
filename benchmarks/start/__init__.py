"""The benchmark `start`."""
