"""TorchServe's gRPC services."""
