"""The handlers that TorchServe brings."""
