"""One server: its parts put together, started and ended in order."""
