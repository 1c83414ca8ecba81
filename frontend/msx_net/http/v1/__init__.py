"""HTTP/1.1: a connection, from the bytes of its parser to the bytes of its replies."""
