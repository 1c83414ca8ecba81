"""TorchServe's inference, management and metrics APIs."""
