"""`ts.torch_handler.request_envelope.json`."""

from msx_torchserve.envelopes.json import JSONEnvelope

__all__ = ["JSONEnvelope"]
