"""`ts.torch_handler.request_envelope.body`."""

from msx_torchserve.envelopes.body import BodyEnvelope

__all__ = ["BodyEnvelope"]
