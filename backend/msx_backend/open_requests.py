"""The requests that this worker holds, by number, so that they can be cancelled."""

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from msx_backend.segments.space import SegmentSpace
from msx_backend.segments.values import RequestValues
from msx_core.references import Key
from msx_protocol import Predict, RequestHead, decode_headers
from msx_sdk.request import Headers, InferenceRequest, Part

NO_PARTS: Mapping[str, Part] = MappingProxyType({})


class OpenRequests:
    """Thread-safe: requests are added and removed on the main thread, and cancelled on the control thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[int, InferenceRequest] = {}
        self._cancelled_early: set[int] = set()
        self._asked: set[int] = set()
        self._newest = 0
        self._orphaned = False
        self.deferred = False
        """Whether a cancel counts from the next plan on: in a parallel group, so that all ranks agree."""
        self._tell_cancel: Callable[[int], None] = lambda number: None
        self._segments: SegmentSpace | None = None
        self._inline = False
        self._returned: Callable[[list[Key]], None] = lambda segments: None

    def share(self, segments: SegmentSpace, returned: Callable[[list[Key]], None], *, inline: bool = False) -> None:
        """Let large values of requests and replies stand in shared memory, in the worker of a stage. `returned` hears
        of those that nothing refers to any more.

        `inline`: in a parallel group the other ranks read the requests, too: large values become parts of them.
        """
        self._segments, self._returned, self._inline = segments, returned, inline

    def tell_cancels(self, call: Callable[[int], None]) -> None:
        """Make `call` with the number of each request that is cancelled from now on, on the control thread."""
        self._tell_cancel = call

    def take(self, message: Predict, body: bytearray) -> list[InferenceRequest]:
        """Single fields are not copied: the body belongs to the handler from now on."""
        requests, held = read_requests(message.requests, body), self._held
        if self._segments is not None:
            self._share(requests, message, self._segments)
        with self._lock:
            for request in requests:
                held[request.number] = request
            if requests:
                self._newest = max(self._newest, requests[-1].number)  # two frontends may send, each its own numbers
            if self._cancelled_early or self._orphaned:
                self._remember(requests)
        return requests

    def release(self, requests: list[InferenceRequest]) -> None:
        held, asked = self._held, self._asked
        for request in requests:
            held.pop(request.number, None)
            if asked:
                asked.discard(request.number)
            request.parts = NO_PARTS  # a handler may keep its context, and so the request
            request.input = request.encoder = None
            if request.shared is not None:
                request.shared.close()
                request.shared = None
        if self._segments is not None and (returned := self._segments.take_returned()):
            self._returned(returned)

    def cancel(self, numbers: list[int]) -> None:
        """A number that has not come yet is remembered; the number of a request that has ended is ignored."""
        for number in numbers:
            with self._lock:
                request = self._held.get(number)
                if request is None and number > self._newest:
                    self._cancelled_early.add(number)
            if request is None or request.cancelled:
                continue
            if self.deferred:
                self._asked.add(number)
            else:
                request.cancelled = True
                self._tell_cancel(number)
            request.lift()  # a handler that waits for this client goes on, and sees the cancel

    @property
    def newest(self) -> int:
        """Largest number of a request that has come."""
        return self._newest

    def orphan(self) -> None:
        """Cancel all, also those that come still: the frontend that has sent them has crashed."""
        with self._lock:
            self._orphaned = True
            held = [*self._held]
        self.cancel(held)

    def adopt(self) -> None:
        """Requests that come from now on are of another frontend."""
        with self._lock:
            self._orphaned = False
            self._cancelled_early.clear()

    def grant(self, number: int, limit: int) -> None:
        """The client has taken enough for more to be sent. The number of a request that has ended is ignored."""
        request = self._held.get(number)
        if request is not None:
            request.grant(limit)

    def settle(self, requests: list[InferenceRequest]) -> list[int]:
        """Applies deferred cancels; returns the numbers of the requests that are cancelled by it."""
        for request in requests:
            request.cancelled = request.cancelled or request.number in self._asked
        return [request.number for request in requests if request.cancelled]

    def _share(self, requests: list[InferenceRequest], message: Predict, segments: SegmentSpace) -> None:
        for request in requests:
            keys = message.segments.get(request.number, [])
            shared = request.shared = RequestValues(segments, keys, in_frames=message.in_frames)
            if self._inline:
                request.parts = {name: shared.inline(part) for name, part in request.parts.items()}

    def _remember(self, requests: list[InferenceRequest]) -> None:
        for request in requests:
            request.cancelled = self._orphaned or request.number in self._cancelled_early
        self._cancelled_early = {number for number in self._cancelled_early if number > self._newest}


def read_requests(heads: list[RequestHead], body: bytearray) -> list[InferenceRequest]:
    whole, start = len(body), 0
    requests: list[InferenceRequest] = []
    for head in heads:
        parts: dict[str, Part] = {}
        for field in head.fields:
            size = field.size
            data = body[start : start + size] if size < whole or not whole else body
            parts[field.name] = Part(data, field.content_type)
            start += size
        deadline = None if head.timeout is None else time.monotonic() + head.timeout
        headers = partial(_headers, head)
        requests.append(
            InferenceRequest(head.id, parts, headers, number=head.number, deadline=deadline, operation=head.operation)
        )
    return requests


def _headers(head: RequestHead) -> Headers:
    headers = Headers(decode_headers(head.headers))
    for field in head.fields:
        if field.content_type:
            headers.setdefault(field.name, {"content-type": field.content_type})
    return headers
