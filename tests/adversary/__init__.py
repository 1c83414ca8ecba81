"""What strangers and clients can do to a server: kinds of attacks on every listener, and on every route and method of
the lists of families and services."""
