"""The wire protocol between the frontend and rank 0 of a worker group, and between the ranks of a group.

Two stream sockets, inherited by the worker: **data** (Load, Predict, Drain and their replies, in order) and
**control** (Ping, Pong, Cancel, Credit). Other ranks have a third one to rank 0 (PlanCall, …). A stage's rank 0 has
one for segments of shared memory, with messages of its own (`segments`). All others carry frames:

    frame = head size: u32 LE, body size: u32 LE, head, body

The head is one message, a MessagePack array whose first entry is its tag (one struct per message;
`receivers` says which come where). The body is raw payload bytes and is never re-encoded: for Predict the fields of all
requests one after the other, for Chunk the chunk. Nothing is pickled.
"""

from msx_protocol.frame_reader import LARGE, FrameReader
from msx_protocol.frames import MAX_BODY, MAX_HEAD, PREFIX, ProtocolError, encode_frame, encode_frame_parts
from msx_protocol.heartbeat import Ping, Pong
from msx_protocol.load import Load, Loaded, LoadFailed, LoadProgress
from msx_protocol.message import WireMessage
from msx_protocol.metrics import MetricDeclaration, MetricInfo, MetricSample
from msx_protocol.plan import CallDone, PlanCall, PlanEnd, PlanMessage, PlanStep
from msx_protocol.receivers import Plan, ToFrontend, ToWorker, ToWorkerControl
from msx_protocol.replies import Broken, Chunk, Chunks, CompleteReplies, Dropped, Failed, Joined, Lent, Returned
from msx_protocol.requests import (
    Cancel,
    Credit,
    Drain,
    FieldHead,
    FieldRow,
    Predict,
    PredictRows,
    RequestHead,
    RequestRow,
    decode_headers,
    encode_headers,
)
from msx_protocol.version import PROTOCOL_VERSION

__all__ = [
    "LARGE",
    "MAX_BODY",
    "MAX_HEAD",
    "PREFIX",
    "PROTOCOL_VERSION",
    "Broken",
    "CallDone",
    "Cancel",
    "Chunk",
    "Chunks",
    "CompleteReplies",
    "Credit",
    "Drain",
    "Dropped",
    "Failed",
    "FieldHead",
    "FieldRow",
    "FrameReader",
    "Joined",
    "Lent",
    "Load",
    "LoadFailed",
    "LoadProgress",
    "Loaded",
    "MetricDeclaration",
    "MetricInfo",
    "MetricSample",
    "Ping",
    "Plan",
    "PlanCall",
    "PlanEnd",
    "PlanMessage",
    "PlanStep",
    "Pong",
    "Predict",
    "PredictRows",
    "ProtocolError",
    "RequestHead",
    "RequestRow",
    "Returned",
    "ToFrontend",
    "ToWorker",
    "ToWorkerControl",
    "WireMessage",
    "decode_headers",
    "encode_frame",
    "encode_frame_parts",
    "encode_headers",
]
