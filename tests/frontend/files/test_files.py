"""OpenAI's `/v1/files`: uploads that are counted while they come, lists, contents, ends."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from msx_core.service_errors import ServiceUnavailable
from msx_frontend.batches.records import BatchHead
from msx_frontend.files.shelf import UPLOADING
from msx_frontend.files.written import WrittenFile
from msx_frontend.store.store import Store
from tests.frontend.batches.serving import BOUNDARY, LIMITS, PATH, Served, form, jsonl, row, serving
from tests.frontend.generation.speaker import Speaker, words
from tests.frontend.keys.some import some_key
from tests.loops import run

CONTENT = jsonl(row("a"))


def left(folder: Path) -> list[str]:
    return [path.name for path in (folder / "files").iterdir()] if (folder / "files").exists() else []


def test_a_file_is_kept_shown_listed_read_and_deleted(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            sent = await served.send(form(CONTENT, "my.jsonl", purpose="batch"))
            file = sent.json
            assert (sent.status, file["filename"], file["bytes"]) == (200, "my.jsonl", len(CONTENT))
            assert (file["purpose"], file["object"], file["status"]) == ("batch", "file", "processed")
            assert file["expires_at"] - file["created_at"] == 30 * 86_400
            assert (await served.get(f"files/{file['id']}")).json == file
            assert (await served.get("files")).json["data"] == [file]
            content = await served.speaker.begin(f"/v1/files/{file['id']}/content", None, "GET").finish()
            assert content.body == CONTENT
            assert (await served.get(f"files/{file['id']}", "DELETE")).json["deleted"] is True
            gone = await served.get(f"files/{file['id']}")
            assert (gone.status, gone.json["error"]["code"]) == (404, "file_not_found")
            assert left(tmp_path) == []

    run(test())


def test_files_outlive_a_server(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as first:
            id = await first.upload(CONTENT)
            for name, age in (("half", 7200), ("young", 0)):
                (tmp_path / "files" / name).write_bytes(b"x")
                os.utime(tmp_path / "files" / name, (time.time() - age,) * 2)
        async with serving(tmp_path) as second:
            assert (await second.get(f"files/{id}")).json["bytes"] == len(CONTENT)
            assert sorted(left(tmp_path)) == [id, "young"]
            assert second.shelf.room("") == LIMITS.size - len(CONTENT)

    run(test())


def test_pages_and_purposes(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            ids = [await served.upload(CONTENT) for _ in range(3)]
            newest = (await served.get("files?limit=2")).json
            assert ([one["id"] for one in newest["data"]], newest["has_more"]) == ([ids[2], ids[1]], True)
            rest = (await served.get(f"files?limit=2&after={newest['last_id']}")).json
            assert ([one["id"] for one in rest["data"]], rest["has_more"]) == ([ids[0]], False)
            assert [one["id"] for one in (await served.get("files?order=asc")).json["data"]] == ids
            assert (await served.get("files?purpose=batch_output")).json["data"] == []
            for query in ("limit=0", "limit=x", "limit=10001", "order=up"):
                assert (await served.get(f"files?{query}")).status == 400, query

    run(test())


REFUSED: list[tuple[dict[str, str], bytes | None, int, str]] = [
    ({"purpose": "fine-tune"}, CONTENT, 400, "purpose: 'fine-tune' is not kept here"),
    ({}, CONTENT, 400, "purpose: needed"),
    ({"purpose": "batch"}, None, 400, "file: needed"),
    ({"purpose": "batch"}, b"x" * 20_001, 413, "20000 bytes (max_file_size)"),
    ({"purpose": "b" * 1001}, CONTENT, 400, "purpose: the field may have at most 1000 bytes"),
    ({"purpose": "batch", "expires_after[seconds]": "3600"}, CONTENT, 400, "expires_after[anchor]"),
    (
        {"purpose": "batch", "expires_after[anchor]": "created_at", "expires_after[seconds]": "60"},
        CONTENT,
        400,
        "expires_after[seconds]: expected a number from 3600",
    ),
]


@pytest.mark.parametrize(("fields", "content", "status", "told"), REFUSED)
def test_refused_uploads_leave_nothing(
    tmp_path: Path, fields: dict[str, str], content: bytes | None, status: int, told: str
) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            refused = await served.send(form(content, **fields))
            assert (refused.status, told in refused.json["error"]["message"]) == (status, True), refused.body
            assert left(tmp_path) == []
            assert served.shelf.room("") == LIMITS.size

    run(test())


def test_a_time_to_live_may_be_asked_for(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            fields = {"expires_after[anchor]": "created_at", "expires_after[seconds]": "7200"}
            file = (await served.send(form(CONTENT, purpose="batch", **fields))).json
            assert file["expires_at"] - file["created_at"] == 7200

    run(test())


BROKEN = [
    (form(CONTENT, purpose="batch"), "application/json", "Expected multipart/form-data"),
    (form(CONTENT, purpose="batch")[:-20], "", "ends without its closing boundary"),
    (b"nonsense", "", "malformed"),
    (form(CONTENT, purpose="batch"), f"multipart/form-data; boundary={'a' * 300}", "Boundary length 300"),
    (form(CONTENT, **{str(number): "x" for number in range(25)}), "", "more than 20 parts"),
    (f"--{BOUNDARY}\r\nx: {'y' * 9000}\r\n\r\n".encode(), "", "malformed|headers of a part"),
    (form(CONTENT, purpose="batch")[: -len(BOUNDARY) - 6] + form(CONTENT), "", "one file, not several"),
]


@pytest.mark.parametrize(("body", "kind", "told"), BROKEN)
def test_broken_forms(tmp_path: Path, body: bytes, kind: str, told: str) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            refused = await served.send(body, **({"content_type": kind} if kind else {}))
            message = refused.json["error"]["message"]
            assert (refused.status, any(one in message for one in told.split("|"))) == (400, True), message
            assert left(tmp_path) == []

    run(test())


def test_a_key_has_so_many_files_and_bytes(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, limits=LIMITS._replace(size=1000, most=2)) as served:
            await served.upload(b"x" * 700)
            refused = await served.send(form(b"x" * 301, purpose="batch"))
            assert (refused.status, "1000 bytes (files_size)" in refused.json["error"]["message"]) == (413, True)
            await served.upload(b"x" * 300)
            refused = await served.send(form(b"", purpose="batch"))
            assert (refused.status, "2 files (max_files)" in refused.json["error"]["message"]) == (400, True)

    run(test())


def test_a_client_that_leaves_has_uploaded_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            kind = f"multipart/form-data; boundary={BOUNDARY}"
            exchange = served.speaker.begin("/v1/files", form(CONTENT, purpose="batch")[:-30], content_type=kind)
            exchange.leave()
            await exchange.finish()
            assert left(tmp_path) == []
            assert served.shelf.room("") == LIMITS.size

    run(test())


def test_an_encoded_upload_is_refused(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            refused = await served.send(form(CONTENT, purpose="batch"), content_encoding="gzip")
            assert (refused.status, "without an encoding" in refused.json["error"]["message"]) == (415, True)

    run(test())


def test_a_full_disk_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:

            def full(self: WrittenFile, data: bytes) -> None:
                raise ServiceUnavailable(f"{self.path} cannot be written: No space left on device.")

            with monkeypatch.context() as patch:
                patch.setattr(WrittenFile, "append", full)
                refused = await served.send(form(CONTENT, purpose="batch"))
            assert (refused.status, "No space left" in refused.json["error"]["message"]) == (503, True)
            assert left(tmp_path) == []
            await served.upload(CONTENT)

    run(test())


def test_files_belong_to_the_key_that_sent_them(tmp_path: Path) -> None:
    keys = {"Bearer ann": some_key("ann"), "Bearer bob": some_key("bob")}

    async def test() -> None:
        async with serving(tmp_path, check_token=lambda text: keys[text or ""]) as served:
            ann: dict[str, Any] = {"authorization": "Bearer ann"}
            bob: dict[str, Any] = {"authorization": "Bearer bob"}
            id = await served.upload(CONTENT, **ann)
            assert (await served.get(f"files/{id}", **ann)).status == 200
            for path, method in ((f"files/{id}", "GET"), (f"files/{id}", "DELETE"), (f"files/{id}/content", "GET")):
                assert (await served.get(path, method, **bob)).status == 404
            assert (await served.get("files", **bob)).json["data"] == []

    run(test())


def test_files_that_have_expired_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msx_frontend.files.shelf.SWEEP_EVERY", 0.0)

    async def test() -> None:
        async with serving(tmp_path, limits=LIMITS._replace(days=0)) as served:
            id = await served.upload(CONTENT)
            assert (await served.get(f"files/{id}")).status == 404
        async with serving(tmp_path) as again:
            while left(tmp_path):
                await asyncio.sleep(0)
            assert again.shelf.room("") == LIMITS.size

    run(test())


def test_what_is_unfinished_is_removed_while_the_server_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for what is written to, and for files of batches."""
    monkeypatch.setattr("msx_frontend.files.shelf.SWEEP_EVERY", 0.0)

    async def test() -> None:
        async with serving(tmp_path) as served:
            kept = await served.upload(CONTENT)
            batch = await served.begun(row("a"))
            await served.speaker.next_job(0)
            head = served.batches._active[batch].head
            names = {"old", "young", kept, head.output, head.error}
            for name in names:
                path = served.shelf.folder / name
                path.touch()
                age = 0 if name == "young" else UPLOADING + 60
                os.utime(path, (time.time() - age, time.time() - age))
            while "old" in left(tmp_path):
                await asyncio.sleep(0.001)
            assert names - {"old"} <= set(left(tmp_path))

    run(test())


def test_a_removal_goes_on_to_its_end_when_the_server_closes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msx_frontend.files.shelf.SWEEP_EVERY", 0.0)
    delete, begun, goes_on = Store.delete, asyncio.Event(), asyncio.Event()

    async def deleted(self: Store, *asked: str) -> bool:
        begun.set()
        await goes_on.wait()
        return await delete(self, *asked)

    monkeypatch.setattr(Store, "delete", deleted)

    async def test() -> None:
        async with serving(tmp_path, limits=LIMITS._replace(days=0)) as served:
            await served.upload(CONTENT)
            await begun.wait()
            closing = asyncio.ensure_future(served.shelf.close())
            await asyncio.sleep(0)
            goes_on.set()
            await closing
        assert left(tmp_path) == []

    run(test())


def test_the_input_of_a_batch_stays(tmp_path: Path) -> None:
    async def test(served: Served) -> None:
        id = await served.upload(CONTENT)
        batch = await served.create(id)
        refused = await served.get(f"files/{id}", "DELETE")
        assert (refused.status, refused.json["error"]["code"]) == (409, "file_in_use")
        served.room.is_wanted = False
        await served.ended(batch["id"])
        assert (await served.get(f"files/{id}", "DELETE")).status == 200

    async def serve() -> None:
        async with serving(tmp_path, words("a")) as served:
            served.room.is_wanted = True
            await test(served)

    run(serve())


@pytest.mark.parametrize("first", ["delete", "create"])
def test_a_file_is_deleted_or_read_by_a_batch_not_both(tmp_path: Path, first: str) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a")) as served:
            id = await served.upload(jsonl(row("a")))
            asked = {"input_file_id": id, "endpoint": PATH, "completion_window": "24h"}
            work = {"delete": served.get(f"files/{id}", "DELETE"), "create": served.get("batches", "POST", asked)}
            order = sorted(work, key=lambda one: one != first)
            won, lost = await asyncio.gather(*(work[one] for one in order))
            assert (won.status, lost.status) == (200, 404 if first == "delete" else 409), (won.body, lost.body)
            if first == "create":
                assert (await served.ended(won.json["id"]))["status"] == "completed"

    run(test())


def test_a_refused_batch_does_not_hold_its_input(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, most=0) as served:
            id = await served.upload(jsonl(row("a")))
            await served.create(id, status=400)
            assert (await served.get(f"files/{id}", "DELETE")).status == 200

    run(test())


def test_without_jobs_there_are_no_files() -> None:
    async def test() -> None:
        for method, path in (("POST", "files"), ("GET", "files"), ("GET", "files/x"), ("GET", "batches")):
            body = form(CONTENT, purpose="batch") if method == "POST" else None
            refused = await Speaker([words("a")]).ask(f"/v1/{path}", body, method)
            assert (refused.status, "jobs=true" in refused.json["error"]["message"]) == (404, True)

    run(test())


def test_a_written_file_that_grows_is_cut_where_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = WrittenFile(tmp_path / "x")
    file.append(b"whole\n")

    def half(fd: int, data: memoryview, place: int) -> int:
        real(fd, bytes(data[:2]), place)
        raise OSError(28, "No space left on device")

    real = os.pwrite
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", half)
        with pytest.raises(ServiceUnavailable, match="No space left"):
            file.append(b"another\n")
    file.append(b"last\n")
    file.close()
    assert (tmp_path / "x").read_bytes() == b"whole\nlast\n"


def test_a_head_that_is_unfinished_is_no_end() -> None:
    head = BatchHead(endpoint="/x", input="f", window="24h", end=0)
    assert head.into("in_progress", 1.0).times == {"in_progress": 1.0}
