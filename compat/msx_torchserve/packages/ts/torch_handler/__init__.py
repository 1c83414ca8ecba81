"""TorchServe's default handlers."""
