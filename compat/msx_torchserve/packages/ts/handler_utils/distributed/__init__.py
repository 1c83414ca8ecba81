"""Helpers of TorchServe's parallel handlers, which are not supported here."""
