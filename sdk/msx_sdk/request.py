"""One request of a batch, as the worker receives it."""

from msx_core.request import Headers, InferenceRequest, Part

__all__ = ["Headers", "InferenceRequest", "Part"]
