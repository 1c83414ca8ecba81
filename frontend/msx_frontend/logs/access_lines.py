"""The lines of the access log: for the console, and TorchServe's lines for access_log.log."""

import time
from collections.abc import Callable
from json.encoder import encode_basestring as quoted
from typing import NamedTuple

import msgspec

from msx_frontend.logs.log4j_time import date_and_time
from msx_frontend.shown_url import shown_target
from msx_net.logged_calls import Entry, Request

MOST_REQUESTS, LONGEST_TARGET = 2048, 256
MOST_DURATIONS = 4096


class LoggedRequest(NamedTuple):
    """The members that many requests of one connection have in common: `Request`, with names."""

    client: str
    key: str
    """The name of the key of the request; empty if the key has no name."""
    method: str
    target: str
    protocol: str
    status: int

    @property
    def line(self) -> str:
        key = f" {self.key}" if self.key else ""
        return f'/{self.client}{key} "{self.method} {shown_target(self.target)} {self.protocol}"'


TracesOf = Callable[[list[str]], dict[str, str]]
"""The traces of those of these requests that are sampled, by their ids."""

Texts = tuple[str, str]
"""The text of the console, and that of the file."""


class AccessLines:
    """Formats lines. Texts that recur are made once: those of a connection's requests, a duration, a millisecond."""

    def __init__(self) -> None:
        self._requests: dict[Request, Texts] = {}
        self._durations: dict[float, Texts] = {}

    def __call__(self, entries: list[Entry], traces_of: TracesOf | None = None) -> tuple[str, str]:
        """The lines for the console, and those for the file. The entries are in the order of their ends."""
        ids = self._ids(entries) if traces_of is None else self._with_traces(entries, traces_of)
        console, file = list[str](), list[str]()
        requests, durations = self._requests, self._durations
        epoch, next_milli = time.time() - time.monotonic(), 0.0
        for (asked, _, started, ended), id in zip(entries, ids, strict=True):
            if ended >= next_milli:
                millis = int((ended + epoch) * 1000)
                now, file_now, next_milli = *self._moment(millis), (millis + 1) / 1000 - epoch
            text, file_text = requests.get(asked) or self._request(asked)
            hundredths = (ended - started) // 1e-5
            took, file_took = durations.get(hundredths) or self._duration(hundredths)
            console.append(f'{now}{text}{took}{id}"}}\n')
            file.append(f"{file_now}{file_text}{file_took}")
        return "".join(console), "".join(file)

    def _ids(self, entries: list[Entry]) -> list[str]:
        """The ids, escaped for JSON if necessary. One check of all together is cheaper than a check of each."""
        ids = [id for _, id, _, _ in entries]
        together = "".join(ids)
        if len(msgspec.json.encode(together)) == len(together) + 2:
            return ids
        return [quoted(id)[1:-1] for id in ids]

    def _with_traces(self, entries: list[Entry], traces_of: TracesOf) -> list[str]:
        """The ids, each with the trace of its request, where that is sampled."""
        ids, asked = self._ids(entries), [id for _, id, _, _ in entries]
        if traces := traces_of(asked):
            places = dict(zip(asked, range(len(asked)), strict=True))  # few are sampled: the others need no look
            for id, trace in traces.items():
                ids[places[id]] += f'","trace_id":"{trace}'
        return ids

    def _moment(self, millis: int) -> Texts:
        second, rest = divmod(millis, 1000)
        date = date_and_time(second)
        return f'{{"time":{second}.{rest:03},"level":"INFO","logger":"msx.access",', f"{date},{rest:03} - "

    def _request(self, key: Request) -> Texts:
        asked = LoggedRequest(*key)
        line = f"{asked.line} {asked.status} "
        texts = self._json_request(asked), line
        if len(asked.target) <= LONGEST_TARGET:
            if len(self._requests) >= MOST_REQUESTS:
                self._requests.clear()
            self._requests[key] = texts
        return texts

    def _json_request(self, asked: LoggedRequest) -> str:
        client, method, path = quoted(asked.client), quoted(asked.method), quoted(shown_target(asked.target))
        key = f'"key":{quoted(asked.key)},' if asked.key else ""
        return f'"client":{client},{key}"method":{method},"path":{path},"status":{asked.status},"ms":'

    def _duration(self, hundredths: float) -> Texts:
        if len(self._durations) >= MOST_DURATIONS:
            self._durations.clear()
        millis = hundredths / 100
        texts = self._durations[hundredths] = f'{millis},"request_id":"', f"{millis:.0f}\n"
        return texts
