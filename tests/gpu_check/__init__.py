"""`scripts/gpu-check`: TorchServe's handlers on this machine's GPUs, on one page."""
