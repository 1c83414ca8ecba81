"""The keys of the server: generated keys, keys of the operator, and the rights of each."""
