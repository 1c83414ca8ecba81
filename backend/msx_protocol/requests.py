"""Requests for the handler, and messages about them."""

import msgspec

from msx_protocol.message import WireMessage


class FieldHead(WireMessage):
    """One field of a request; its `size` bytes stand in the body."""

    name: str
    content_type: str | None
    size: int


class RequestHead(WireMessage):
    """One request of a batch. `timeout` is in seconds from now; None means that it may take any time.

    `number` names the request on these two sockets; each is larger than all that the same frontend has sent before it.
    `headers` are as `encode_headers` makes them: most are sent again and again, and few are read.
    `operation` is "" for a prediction, `msx_sdk.kserve.INFER`, or one of `msx_core.generation`, or
    names a method (`msx_core.methods`).
    """

    number: int
    id: str
    headers: msgspec.Raw
    fields: list[FieldHead]
    timeout: float | None
    operation: str = ""


class Predict(WireMessage, tag=2):
    """A batch, or several. Every request is answered in CompleteReplies, by Chunks (`last` on the final one), by
    Failed, or by Dropped.

    `joins`: the worker may run it together with the batches directly after it that have `joins`, too, up to the batch
    size. `size`: each batch has so many of the requests, and they run one after the other; 0: there is one batch.
    `segments`: by the number of a request, the segments (owner, number) that its fields refer to. `in_frames`: replies
    refer to no segments.
    """

    requests: list[RequestHead]
    joins: bool = False
    size: int = 0
    segments: dict[int, list[tuple[int, int]]] = {}
    in_frames: bool = False


class Drain(WireMessage, tag=3):
    """No more work will come: finish what is running, close the handler, exit with 0."""


class Cancel(WireMessage, tag=11):
    """The clients of these requests have left. A number that was not seen yet is remembered until it comes."""

    numbers: list[int]


class Credit(WireMessage, tag=12):
    """The client has taken so much of this reply that its chunks may have `limit` bytes in all from now on."""

    number: int
    limit: int


FieldRow = tuple[str, str | None, int]
"""A FieldHead to be sent: a tuple is made in a fourth of the time that the struct takes, and encoded alike."""
RequestRow = tuple[int, str, msgspec.Raw, list[FieldRow], float | None, str]
"""A RequestHead to be sent."""


class PredictRows(WireMessage, tag=2):
    """A Predict to be sent."""

    requests: list[RequestRow]
    joins: bool
    size: int
    segments: dict[int, list[tuple[int, int]]] = {}
    in_frames: bool = False


_encode = msgspec.msgpack.Encoder().encode
_decode_headers = msgspec.msgpack.Decoder(list[tuple[str, str]]).decode


def encode_headers(headers: list[tuple[str, str]]) -> msgspec.Raw:
    return msgspec.Raw(_encode(headers))


def decode_headers(headers: msgspec.Raw) -> list[tuple[str, str]]:
    """Raises msgspec.DecodeError."""
    return _decode_headers(headers)
