"""`ts.torch_handler.request_envelope.kserve`."""

from msx_torchserve.envelopes.kserve import KServeEnvelope

__all__ = ["KServeEnvelope"]
