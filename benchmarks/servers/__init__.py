"""The servers that are measured: MSX, and servers that only answer, which show what the load can do."""
