"""How bytes come and go: HTTP, gRPC, TLS. It knows requests and jobs, and does not know models."""
