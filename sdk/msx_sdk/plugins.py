"""The interface for plugins: the server finds endpoints and places for snapshots by their entry points, workers find
envelopes and packages of handlers.

The counterpart of TorchServe's `servingsdk` (docs/plugins.md).
"""

from msx_core.errors import InvalidInput, PredictionError
from msx_core.plugins import (
    ENDPOINTS,
    ENVELOPES,
    HANDLER_PACKAGES,
    SNAPSHOTS,
    Endpoint,
    EndpointRequest,
    EndpointResponse,
    HandlerPackage,
    ModelView,
    SavedSnapshot,
    ServerView,
    SnapshotSerializer,
    WorkerView,
)

__all__ = [
    "ENDPOINTS",
    "ENVELOPES",
    "HANDLER_PACKAGES",
    "SNAPSHOTS",
    "Endpoint",
    "EndpointRequest",
    "EndpointResponse",
    "HandlerPackage",
    "InvalidInput",
    "ModelView",
    "PredictionError",
    "SavedSnapshot",
    "ServerView",
    "SnapshotSerializer",
    "WorkerView",
]
