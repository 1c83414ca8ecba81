"""`ts.torch_handler.request_envelope.kserve`."""

from msx_backend.envelopes.kserve import KServeEnvelope

__all__ = ["KServeEnvelope"]
