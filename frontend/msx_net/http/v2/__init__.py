"""HTTP/2: the requests of API families as streams of `net/http2`."""
