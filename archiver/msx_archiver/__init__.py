"""Pack, inspect, verify and unpack model archives."""
