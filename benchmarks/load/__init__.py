"""The clients that send requests."""
