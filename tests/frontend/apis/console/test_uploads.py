"""Archives that are uploaded: registered, or not in the model store."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from tests.frontend.apis.console.consoles import open_console
from tests.loops import run
from tests.net.http.client import Exchange, ask

ON = {"enable_model_api": True, "console_upload": True}


def upload(
    folder: Path, name: str = "up.mar", body: bytes | None = None, on: dict[str, bool] = ON
) -> tuple[Exchange, list[str]]:
    """The reply, and the archives of the model store behind it."""
    replies: list[Exchange] = []

    async def test() -> None:
        async with open_console(folder, **cast(Any, on)) as opened:
            packed = opened.harness.pack("m")
            data = packed.read_bytes() if body is None else body
            packed.unlink()
            if name == "taken.mar":
                (opened.harness.root / name).write_bytes(b"another")
            replies.append(await ask(opened.edge, "PUT", f"/console/upload/{name}?initial_workers=1", data))
            if replies[0].status == 200:
                assert opened.harness.registry.find("m").workers.ready == 1

    run(test())
    return replies[0], sorted(path.name for path in (folder / "store").iterdir() if path.is_file())


def test_an_archive_is_registered(tmp_path: Path) -> None:
    reply, files = upload(tmp_path)
    assert (reply.status, files) == (200, ["up.mar"])
    assert reply.json["status"] == 'Model "m" Version: 1.0 registered with 1 initial workers'


def test_what_is_not_an_archive_leaves_nothing(tmp_path: Path) -> None:
    reply, files = upload(tmp_path, body=b"not a zip")
    assert (reply.status, files) == (400, [])


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    reply, files = upload(tmp_path, "taken.mar")
    assert (reply.status, files) == (409, ["taken.mar"])
    assert (tmp_path / "store" / "taken.mar").read_bytes() == b"another"


@pytest.mark.parametrize("name", ["m.txt", ".m.mar", "..%2fm.mar", "a%2fb.mar", "%00.mar"])
def test_other_names(tmp_path: Path, name: str) -> None:
    reply, files = upload(tmp_path, name)
    assert reply.status in (400, 404)
    assert files == []


def test_an_empty_body(tmp_path: Path) -> None:
    reply, files = upload(tmp_path, body=b"")
    assert (reply.status, files) == (400, [])


@pytest.mark.parametrize("off", sorted(ON))
def test_without_a_key_that_allows_it(tmp_path: Path, off: str) -> None:
    reply, files = upload(tmp_path, on={**ON, off: False})
    assert (reply.status, files) == (405, [])
    assert off in reply.json["message"]
