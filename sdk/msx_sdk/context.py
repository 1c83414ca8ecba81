"""The context of a handler: its model, its rank and the requests of the call."""

from msx_core.context import Context, ModelInfo, NoRequestError

__all__ = ["Context", "ModelInfo", "NoRequestError"]
