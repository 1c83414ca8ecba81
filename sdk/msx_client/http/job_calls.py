"""The calls of jobs, as HTTP: requests that are answered later, and what is asked of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

from msx_client.address import Part
from msx_client.call import HttpCall, Reply
from msx_client.errors import NotServedError, UnavailableError
from msx_client.http.content import decode_json
from msx_client.http.streams import Events
from msx_client.texts import TextPiece, piece_of

T = TypeVar("T")
ACCEPTED = 202


def deferred(call: HttpCall[Any], callback: str | None, idempotency_key: str | None) -> HttpCall[str]:
    """The same request, answered by the id of its job."""
    headers = {**call.headers, "prefer": "respond-async"}
    headers |= {"x-msx-callback": callback} if callback else {}
    headers |= {"idempotency-key": idempotency_key} if idempotency_key else {}
    return replace(call, headers=headers, read=_id, decoder=None)


class JobCalls:
    """Calls about the jobs of one key, or about all by the management key."""

    def __init__(self, part: Part) -> None:
        self._part: Part = part
        self._path = "/jobs" if part == "inference" else "/management/jobs"

    def page(self, state: str, after: str, limit: int) -> HttpCall[dict[str, Any]]:
        params = {"limit": str(limit), **({"state": state} if state else {}), **({"after": after} if after else {})}
        return HttpCall(self._part, "GET", self._path, decode_json, params=params)

    def show(self, id: str, wait: float) -> HttpCall[dict[str, Any]]:
        """`wait`: seconds, for its end."""
        params = {"wait": f"{wait:.3f}"} if wait else {}
        return HttpCall(self._part, "GET", self._of(id), decode_json, params=params)

    def result(self, id: str, read: Callable[[Reply], T]) -> HttpCall[T]:
        return HttpCall(self._part, "GET", f"{self._of(id)}/result", partial(_late, read))

    def events(self, id: str) -> HttpCall[TextPiece]:
        return HttpCall(self._part, "GET", f"{self._of(id)}/events", decoder=partial(Events, piece_of))

    def remove(self, id: str) -> HttpCall[Mapping[str, str]]:
        return HttpCall(self._part, "DELETE", self._of(id), decode_json)

    def _of(self, id: str) -> str:
        return f"{self._path}/{quote(id, safe='')}"


def _id(reply: Reply) -> str:
    if reply.status != ACCEPTED:
        raise NotServedError("The server answers at once: jobs=true in its config.properties makes it take jobs.")
    return str(decode_json(reply)["id"])


def _late(read: Callable[[Reply], T], reply: Reply) -> T:
    if reply.status == ACCEPTED:
        raise UnavailableError(f"The job {decode_json(reply)['id']} has not ended.", status=ACCEPTED)
    return read(reply)
