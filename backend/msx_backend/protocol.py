"""The wire protocol between the frontend and rank 0 of a worker group.

Two stream sockets, inherited by the worker: **data** (Load, Predict, Drain and their replies, in order) and
**control** (Ping, Pong, Cancel). Both carry frames:

    frame = head size: u32 LE, body size: u32 LE, head, body

The head is one message, a MessagePack array whose first entry is its tag (one struct per message, below, grouped by
receiver). The body is raw payload bytes and is never re-encoded: for Predict the fields of all requests one after
the other, for Chunk the chunk. Nothing is pickled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from msx_backend.frames import LARGE as LARGE
from msx_backend.frames import MAX_HEAD as MAX_HEAD
from msx_backend.frames import PREFIX as PREFIX
from msx_backend.frames import FrameReader as FrameReader
from msx_backend.frames import ProtocolError as ProtocolError

MAX_BODY = 0xFFFFFFFF


class _Message(msgspec.Struct, array_like=True):
    pass


# -- to the worker, data socket --


class DeclaredMetric(_Message):
    """One of `model_metrics` in metrics.yaml, which handlers find by `context.metrics.get_metric`."""

    kind: str
    name: str
    unit: str
    dimensions: list[str]


class Load(_Message, tag=1, kw_only=True):
    """The first message: what to load and who this rank is. Answered by LoadProgress*, then Loaded or LoadFailed.

    `model_dir` is absolute; so is `site_dir`, with packages that come before the interpreter's own.
    `max_response_size` is in bytes, of one Chunk.
    """

    model_name: str
    model_version: str
    model_dir: str
    handler: str
    manifest: dict[str, Any]
    config: dict[Any, Any]
    batch_size: int
    isolate_batch_errors: bool
    device_id: int | None
    rank: int
    local_rank: int
    world_size: int
    input_ranks: int = 1
    """Of a parallel group, the ranks below this one get the inputs; the others get empty requests."""
    cache_dir: str | None
    site_dir: str | None = None
    decode_input: bool
    limit_max_image_pixels: bool
    max_response_size: int
    server_version: str
    service_envelope: str = ""
    """One of `body`, `json`, `kserve` and `kservev2` wraps the handler; "" leaves it as it is."""
    model_metrics: list[DeclaredMetric] = []
    continuous: bool = False
    """Call the handler again and again, with all requests that are there: `continuousBatching`."""
    log_calls: bool = False
    """Each call's PredictionTime is logged: send all of them, and not just the last one."""


class FieldHead(_Message):
    """One field of a request; its `size` bytes stand in the body."""

    name: str
    content_type: str | None
    size: int


class RequestHead(_Message):
    """One request of a batch. `timeout` is in seconds from now; None means that nobody's patience is limited.

    `number` names the request on these two sockets; each is larger than all that were sent before it.
    `headers` are as `encode_headers` makes them: most are sent again and again, and few are read.
    `operation` is "" for a prediction, `msx_sdk.kserve.INFER`, or one of `msx_sdk.generation`.
    """

    number: int
    id: str
    headers: msgspec.Raw
    fields: list[FieldHead]
    timeout: float | None
    operation: str = ""


class Predict(_Message, tag=2):
    """A batch. Every request is answered in one of Answers, by Chunk* with `last` on the final one, by Failed, or by
    Dropped.

    `joins`: the worker may run it together with those directly behind it that may, too, as far as a batch holds them.
    """

    requests: list[RequestHead]
    joins: bool = False


class Drain(_Message, tag=3):
    """No more work will come: finish what is running, close the handler, exit with 0."""


# -- to the worker, control socket --


class Ping(_Message, tag=10):
    sequence: int


class Cancel(_Message, tag=11):
    """Nobody waits for these requests any more. One not seen yet is remembered until it comes."""

    numbers: list[int]


# -- from rank 0 to the other ranks of its group, plan sockets --


class PlanCall(_Message, tag=40):
    """Call the handler with this batch. `warmup`: the inputs are the rank's own examples, by their ids."""

    call: int
    requests: list[RequestHead]
    cancelled: list[int]
    warmup: bool = False


class PlanStep(_Message, tag=41):
    """Ask the generator of this call for more, or not; these requests have been cancelled meanwhile.

    Rank 0 also says "not" after its own generator has ended, for one that would go on elsewhere.
    """

    call: int
    go: bool
    cancelled: list[int]


class PlanEnd(_Message, tag=42):
    """No more calls will come: close the handler, exit with 0."""


class PlanTell(_Message, tag=43):
    """Call n is what the handler's `follow` makes of the body: the word of rank 0's handler, which leads by itself."""

    call: int


# -- to the frontend, data socket --


class LoadProgress(_Message, tag=20):
    phase: str


class Loaded(_Message, tag=21):
    """The model answers now. An async handler takes many requests at once, and so does a continuous one.

    `capabilities` is a `msx_sdk.generation.Capabilities`, empty for a handler that only predicts; `signature` a
    `msx_sdk.kserve.Signature`, empty for one that takes any tensors.
    """

    is_async: bool
    seconds: float
    capabilities: dict[str, Any] = {}
    signature: dict[str, Any] = {}
    continuous: bool = False


class LoadFailed(_Message, tag=22):
    message: str
    traceback: str
    out_of_memory: bool


class Chunk(_Message, tag=23):
    """A piece of one reply. `status` is 0, and `headers` empty, on all but the first."""

    number: int
    last: bool
    status: int = 0
    phrase: str = ""
    headers: list[tuple[str, str]] = []


class Answers(_Message, tag=27):
    """Whole replies that have the same head, as those of a batch mostly do: `sizes` are their bytes in the body."""

    numbers: list[int]
    sizes: list[int]
    status: int
    phrase: str
    headers: list[tuple[str, str]]


class Failed(_Message, tag=24):
    number: int
    status: int
    message: str
    traceback: str
    code: str = ""


class CallDone(_Message, tag=26):
    """Only in groups of several ranks, from each of them after each handler call: what must be equal on all.

    `steps` counts a generator's continuations, `collectives` those of the SDK by name, since the start.
    """

    call: int
    requests: list[int]
    steps: int
    collectives: dict[str, int]
    error: str = ""


class Joined(_Message, tag=28):
    """The oldest of the batches that are not answered have begun as one: so many of them."""

    batches: int


class Dropped(_Message, tag=25):
    """A cancelled request is gone from the worker."""

    number: int


# -- to the frontend, control socket --


class MetricSample(_Message):
    """`request_id` is that of the request, or of all requests of the call with commas between; "" outside of calls."""

    name: str
    kind: str
    unit: str
    value: float
    labels: list[tuple[str, str]]
    request_id: str = ""


class MetricForm(_Message):
    """Of a metric that a handler made by the SDK's own calls: it has the version, and a gauge the worker, as labels.

    `help` is "" and `buckets` are empty where the defaults of the unit are wanted.
    """

    name: str
    kind: str
    help: str = ""
    buckets: tuple[float, ...] = ()


class Pong(_Message, tag=30):
    """Proof of progress: handler calls and chunks so far, and for how long the current call has run (seconds).

    `collectives`, of a rank among several, is as in CallDone, and counts those that have only begun, too.
    `forms` are those of new metrics, of which there may be samples.
    """

    sequence: int
    progress: int
    busy_seconds: float
    samples: list[MetricSample]
    collectives: dict[str, int] = {}
    forms: list[MetricForm] = []


ToWorker = Load | Predict | Drain
ToWorkerControl = Ping | Cancel
ToFrontend = LoadProgress | Loaded | LoadFailed | Answers | Chunk | Failed | Dropped | Joined | CallDone
Plan = PlanCall | PlanStep | PlanEnd | PlanTell

_encode = msgspec.msgpack.Encoder().encode
_decode_headers = msgspec.msgpack.Decoder(list[tuple[str, str]]).decode


def encode_headers(headers: list[tuple[str, str]]) -> msgspec.Raw:
    return msgspec.Raw(_encode(headers))


def decode_headers(headers: msgspec.Raw) -> list[tuple[str, str]]:
    """Raises msgspec.DecodeError."""
    return _decode_headers(headers)


def encode_frame(message: _Message, body: bytes | bytearray = b"") -> bytes:
    head = _encode(message)
    return _prefix(len(head), len(body)) + head + body


def encode_frame_parts(message: _Message, bodies: Iterable[bytes | bytearray]) -> list[bytes | bytearray]:
    """The frame as buffers for a gathering write, so that large bodies are not copied here."""
    head = _encode(message)
    parts = list(bodies)
    return [_prefix(len(head), sum(map(len, parts))) + head, *parts]


def _prefix(head: int, body: int) -> bytes:
    if head > MAX_HEAD or body > MAX_BODY:
        raise ProtocolError(f"a frame of {head} + {body} bytes is too large: at most {MAX_HEAD} + {MAX_BODY} fit")
    return PREFIX.pack(head, body)
