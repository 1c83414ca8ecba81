"""Errors that a handler raises.

Exception
├── HandlerLoadError     the model cannot be loaded
└── PredictionError      a status and a message of the handler's choice
    └── InvalidInput     400: this request is wrong; its neighbours in the batch are not
"""

from msx_core.errors import HandlerLoadError, InvalidInput, PredictionError

__all__ = ["HandlerLoadError", "InvalidInput", "PredictionError"]
