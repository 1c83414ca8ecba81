"""The small parent of a server: the frontend and all workers are its children, and it keeps what listens."""
