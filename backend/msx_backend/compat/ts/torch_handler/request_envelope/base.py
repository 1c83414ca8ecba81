"""`ts.torch_handler.request_envelope.base`."""

from msx_backend.envelopes.base import BaseEnvelope

__all__ = ["BaseEnvelope"]
