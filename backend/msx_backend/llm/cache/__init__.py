"""Device memory for keys and values, and the attention that reads it."""
