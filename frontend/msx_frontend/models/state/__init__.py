"""State of the server that outlives a restart."""
