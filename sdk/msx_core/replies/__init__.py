"""The way from an answer that comes in pieces to a client that takes them slowly."""
