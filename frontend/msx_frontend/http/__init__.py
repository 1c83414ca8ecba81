"""The three HTTP listeners."""
