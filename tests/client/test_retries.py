"""Calls are made again only where nothing of them can have run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from msx_client import AsyncClient, Client, ConnectionLostError, ModelFailedError, UnauthorizedError, UnavailableError
from msx_client.errors import MsxError, UnreachableError
from msx_client.retry import Attempts
from tests.client.http_server import Answer, http_server
from tests.client.test_keys import key_file

SOON = Answer(503, b'{"message": "full", "type": "ServiceUnavailableException"}', (("retry-after-ms", "1"),))
FAILED = Answer(503, b'{"message": "Prediction failed", "type": "InternalServerException"}')
DENIED = Answer(400, b'{"message": "Token Authorization failed", "type": "InvalidKeyException"}')


def predict(kind: str, url: str, **options: Any) -> Any:
    """By a client of this kind."""
    if kind == "waits":
        with Client(url, **options) as client:
            return client.predict("m")

    async def test() -> Any:
        async with AsyncClient(url, **options) as client:
            return await client.predict("m")

    return asyncio.run(test())


@pytest.fixture(params=["waits", "on a loop"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_refusal_with_a_time_is_asked_again(kind: str) -> None:
    with http_server(SOON, SOON, Answer()) as asked:
        assert predict(kind, asked.url, key="k") == "done"
    assert asked.keys == ["Bearer k"] * 3


def test_as_often_as_is_said(kind: str) -> None:
    with http_server(SOON, SOON) as asked, pytest.raises(UnavailableError, match="full") as caught:
        predict(kind, asked.url, retries=1, key="k")
    assert caught.value.retry_after == 0.001
    assert len(asked.keys) == 2


@pytest.mark.parametrize("answer", [FAILED, Answer(503, b'{"message": "down"}')])
def test_what_may_have_run_is_not_repeated(kind: str, answer: Answer) -> None:
    with http_server(answer) as asked, pytest.raises(MsxError):
        predict(kind, asked.url, key="k")
    assert len(asked.keys) == 1


def test_a_cut_answer_is_not_repeated(kind: str) -> None:
    with http_server(Answer(cut=True)) as asked, pytest.raises(ConnectionLostError, match="before the answer was"):
        predict(kind, asked.url, key="k")
    assert len(asked.keys) == 1


def test_a_key_that_has_changed_in_its_file(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = key_file(tmp_path / "keys.json", "old")
    with http_server(DENIED, Answer()) as asked:
        monkeypatch.setattr("msx_client.keys.Keys.renew", _rewritten(file))
        assert predict(kind, asked.url, key_file=file) == "done"
    assert asked.keys == ["Bearer old", "Bearer new"]


def _rewritten(file: Path) -> Any:
    from msx_client.keys import Keys

    renew = Keys.renew

    def first_written(keys: Keys, part: Any) -> bool:
        key_file(file, "new")
        return renew(keys, part)

    return first_written


def test_a_key_that_stays_wrong(kind: str, tmp_path: Path) -> None:
    with http_server(DENIED) as asked, pytest.raises(UnauthorizedError, match="Token Authorization failed"):
        predict(kind, asked.url, key_file=key_file(tmp_path / "keys.json"))
    assert len(asked.keys) == 1


def test_an_event_that_is_an_error() -> None:
    events = b'data: {"choices": [{"text": "a"}]}\n\ndata: {"error": {"message": "gone", "code": 500}}\n\n'
    with http_server(Answer(content=events)) as asked, Client(asked.url, key="k") as client:
        pieces = client.generate_stream("m", "x")
        assert next(pieces).text == "a"
        with pytest.raises(ModelFailedError, match="gone"):
            next(pieces)


def test_a_stream_without_its_last_event() -> None:
    events = b"data: " + json.dumps({"choices": [{"delta": {"content": "a"}}]}).encode() + b"\n\n"
    with http_server(Answer(content=events)) as asked, Client(asked.url, key="k") as client:
        pieces = client.chat_stream("m", [])
        assert next(pieces).text == "a"
        with pytest.raises(ConnectionLostError, match="before its last event"):
            next(pieces)


def test_pauses() -> None:
    attempts, nobody = Attempts(3), UnreachableError("x")
    assert [attempts.pause(nobody) for _ in range(4)] == [0.2, 0.4, 0.8, None]
    assert Attempts(3).pause(UnavailableError("x", retry_after=31)) is None
    assert Attempts(3).pause(UnavailableError("x")) is None
