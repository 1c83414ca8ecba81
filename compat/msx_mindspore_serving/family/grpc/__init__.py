"""MindSpore Serving's service over gRPC."""
