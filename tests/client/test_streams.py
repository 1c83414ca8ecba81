"""Server-sent events as the client library reads them."""

from __future__ import annotations

from msx_client.http.streams import Events


def test_comments_are_no_events() -> None:
    events: Events[int] = Events(lambda value: int(value["n"]))
    body = b': \n\n: \n\ndata: {"n": 1}\n\n: \n\ndata: {"n": 2}\n\n: \n\ndata: [DONE]\n\n'
    read = [event for start in range(0, len(body), 3) for event in events.feed(body[start : start + 3])]
    assert read == [1, 2]
    events.end()
