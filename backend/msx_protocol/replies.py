"""Replies of the handler, on their way to the clients."""

from msx_protocol.message import WireMessage


class Chunk(WireMessage, tag=23):
    """A piece of one reply. `status` is 0 and `headers` are empty on all but the first piece."""

    number: int
    last: bool
    status: int = 0
    phrase: str = ""
    headers: list[tuple[str, str]] = []


class Chunks(WireMessage, tag=29):
    """Further pieces of several replies, none of them the first or the last: `sizes` are their bytes in the body.

    A reply may have more than one of them.
    """

    numbers: list[int]
    sizes: list[int]


class CompleteReplies(WireMessage, tag=27):
    """Complete replies with the same head, as most replies of a batch are: `sizes` are their bytes in the body."""

    numbers: list[int]
    sizes: list[int]
    status: int
    phrase: str
    headers: list[tuple[str, str]]


class Failed(WireMessage, tag=24):
    number: int
    status: int
    message: str
    traceback: str
    code: str = ""


class Broken(WireMessage, tag=33):
    """The rank's process cannot serve any more, and waits to be ended: its group is replaced. `reason` is a sentence
    without its full stop."""

    reason: str


class Joined(WireMessage, tag=28):
    """The worker has joined this many batches to one, and begins it now; `first` is the number of its first request.

    A worker that overlaps sends it for each batch, up to two of which are not answered when the next one begins.
    """

    batches: int
    first: int = 0


class Dropped(WireMessage, tag=25):
    """The worker has dropped a cancelled request."""

    number: int


class Lent(WireMessage, tag=31):
    """Comes before a reply of this request, or a chunk of it: the segments (owner, number) that it refers to. They
    are the worker's own, or those of the request."""

    number: int
    segments: list[tuple[int, int]]


class Returned(WireMessage, tag=32):
    """Each ends one loan by a Predict: nothing in the worker refers to the segment because of that request any
    more."""

    segments: list[tuple[int, int]]
