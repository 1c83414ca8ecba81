"""`ts.torch_handler.request_envelope.base`."""

from msx_torchserve.envelopes.base import BaseEnvelope

__all__ = ["BaseEnvelope"]
