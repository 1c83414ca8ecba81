"""OpenAI's `/v1/batches`: from the file of requests to the files of replies."""

from __future__ import annotations

import pkgutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from msx_core.service_errors import InvalidKey, Overloaded, ServiceUnavailable, WorkerDied
from msx_frontend.batches.book import BatchBook
from msx_frontend.batches.input_lines import Checked, LineRules, check_file
from msx_frontend.batches.line_files import LineFiles
from msx_frontend.batches.outcome import LineOutcome, answered
from msx_frontend.batches.records import BatchHead, KeptBatch, batch_of
from msx_frontend.store.errors import StoreUnavailable
from msx_frontend.store.records import Record
from tests.frontend.batches.serving import LIMITS, PATH, Served, jsonl, row, serving
from tests.frontend.generation.speaker import say, words
from tests.frontend.keys.some import some_key
from tests.loops import run, until


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("deferred.tries.AGAIN_AFTER", "batches.line_pass.POLL"):
        monkeypatch.setattr(f"msx_frontend.{name}", 0.0)


def test_a_batch_answers_each_line(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a")) as served:
            file = await served.upload(jsonl(row("one"), row("bad", {"prompt": 3}), row("two")))
            made = await served.create(file, metadata={"of": "me"})
            assert (made["status"], made["input_file_id"], made["metadata"]) == ("validating", file, {"of": "me"})
            assert (made["output_file_id"], made["expires_at"] - made["created_at"]) == (None, 86_400)
            done = await served.ended(made["id"])
            assert done["status"] == "completed"
            assert done["request_counts"] == {"total": 3, "completed": 2, "failed": 1}
            assert made["created_at"] <= done["in_progress_at"] <= done["finalizing_at"] <= done["completed_at"]
            one, two = await served.rows(done["output_file_id"])
            now = (await served.speaker.ask(PATH, {"prompt": "hi"})).json
            assert (one["custom_id"], two["custom_id"], one["error"]) == ("one", "two", None)
            assert one["id"].startswith("batch_req_")
            assert (one["response"]["status_code"], bool(one["response"]["request_id"])) == (200, True)
            body = one["response"]["body"]
            assert {**body, "id": "", "created": 0} == {**now, "id": "", "created": 0}
            (bad,) = await served.rows(done["error_file_id"])
            assert (bad["custom_id"], bad["response"]["status_code"]) == ("bad", 400)
            assert bad["response"]["body"]["error"]["param"] == "prompt"
            file = (await served.get(f"files/{done['output_file_id']}")).json
            assert (file["purpose"], file["filename"]) == ("batch_output", f"{done['id']}_output.jsonl")

    run(test())


FAULTS: list[tuple[bytes, str, int | None, str | None]] = [
    (b"", "empty_file", None, None),
    (b"\n\n", "empty_file", None, None),
    (b"nonsense\n", "invalid_json_line", 1, None),
    (jsonl(row("a"), [1]), "invalid_line", 2, None),
    (jsonl(row("a", {"model": "?"})).replace(b"?", b"\xff"), "invalid_json_line", 1, "body"),
    (jsonl({"custom_id": "a", "url": PATH}), "invalid_line", 1, None),
    (jsonl(row("a"), row("b"), row("a")), "duplicate_custom_id", 3, "custom_id"),
    (jsonl(row("a", url="/v1/chat/completions")), "mismatched_endpoint", 1, "url"),
    (jsonl({**row("a"), "method": "GET"}), "invalid_method", 1, "method"),
    (jsonl(row("a", [1])), "invalid_body", 1, "body"),
    (jsonl(row("")), "invalid_custom_id", 1, "custom_id"),
    (jsonl(row("a", {"prompt": "x" * 2000})), "line_too_long", 1, None),
    (jsonl(*(row(str(number)) for number in range(101))), "too_many_lines", None, None),
    (b"\n" * 101, "too_many_lines", None, None),
]


@pytest.mark.parametrize(("content", "code", "line", "param"), FAULTS)
def test_a_file_with_faults_fails_before_a_line_runs(
    tmp_path: Path, content: bytes, code: str, line: int | None, param: str | None
) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a")) as served:
            done = await served.ended((await served.create(await served.upload(content)))["id"])
            assert (done["status"], done["failed_at"] is not None) == ("failed", True)
            (fault,) = done["errors"]["data"]
            assert (fault["code"], fault["line"], fault["param"]) == (code, line, param)
            assert served.speaker.jobs == []
            assert (done["output_file_id"], done["error_file_id"]) == (None, None)

    run(test())


def test_a_check_ends_with_its_batch_and_with_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def check(path: Path, rules: LineRules, stops: Callable[[], bool]) -> Checked:
        threads.append(threading.current_thread())
        while not stops():
            pass
        return check_file(path, rules, stops)

    monkeypatch.setattr("msx_frontend.batches.batch_run.check_file", check)

    async def test() -> None:
        async with serving(tmp_path) as served:
            ids = [await served.begun(row("a")) for _ in range(4)]
            for id in ids[:3]:
                assert (await served.get(f"batches/{id}/cancel", "POST")).json["status"] == "cancelling"
            await until(lambda: [one.id for one in served.batches.book.open()] == ids[3:])
            assert [(await served.show(id))["status"] for id in ids[:3]] == ["cancelled"] * 3
            await until(lambda: len(threads) >= 4)
        assert {one.name.rpartition("_")[0] for one in threads} == {"msx-batch-input"}
        assert len(set(threads)) <= 2

    run(test())


def test_at_most_a_hundred_faults_are_told(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, lines=300) as served:
            done = await served.ended((await served.create(await served.upload(b"x\n" * 200)))["id"])
            assert len(done["errors"]["data"]) == 100

    run(test())


REFUSED = [
    ({"endpoint": "/v1/models"}, "endpoint: no model answers POST /v1/models"),
    ({"endpoint": "nonsense"}, "endpoint: no model answers"),
    ({"endpoint": f"{PATH}?x=1"}, "endpoint: no model answers"),
    ({"endpoint": "/models"}, "endpoint: no model answers"),
    ({"completion_window": "8d"}, "completion_window: expected 24h"),
    ({"completion_window": "soon"}, "completion_window: expected 24h"),
    ({"metadata": {str(number): "x" for number in range(17)}}, "metadata: at most 16 pairs"),
    ({"metadata": {"a": "x" * 513}}, "metadata"),
    ({"metadata": {"a": 3}}, "metadata"),
    ({"output_expires_after": {"anchor": "created_at", "seconds": 60}}, "output_expires_after.seconds"),
    ({"input_file_id": 3}, "input_file_id"),
]


@pytest.mark.parametrize(("asked", "told"), REFUSED)
def test_refused_batches(tmp_path: Path, asked: dict[str, Any], told: str) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            file = await served.upload(jsonl(row("a")))
            base = {"input_file_id": file, "endpoint": PATH, "completion_window": "24h"}
            refused = await served.get("batches", "POST", {**base, **asked})
            assert (refused.status, told in refused.json["error"]["message"]) == (400, True), refused.body
            assert (await served.get("batches")).json["data"] == []

    run(test())


def test_unknown_files_and_outputs_are_no_inputs(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a")) as served:
            assert (await served.create("file-x", status=404))["code"] == "file_not_found"
            done = await served.ended(await served.begun(row("a")))
            refused = await served.create(done["output_file_id"], status=400)
            assert "has the purpose batch_output, not batch" in refused["message"]
            assert (await served.get("batches/x")).status == 404
            assert (await served.get("batches/x/cancel", "POST")).status == 404

    run(test())


def test_lines_that_ask_for_streams_are_refused_alone(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a")) as served:
            asked = {"prompt": "hi", "stream": True}
            done = await served.ended(await served.begun(row("a", asked), row("b")))
            assert done["request_counts"] == {"total": 2, "completed": 1, "failed": 1}
            (bad,) = await served.rows(done["error_file_id"])
            assert (bad["response"], bad["error"]["code"]) == (None, "stream_not_supported")

    run(test())


def test_what_is_not_answered_runs_again(tmp_path: Path) -> None:
    async def test() -> None:
        script = [Overloaded("full")], [WorkerDied("it did")], [ServiceUnavailable("no worker")], words("a")
        async with serving(tmp_path, *script) as served:
            done = await served.ended(await served.begun(row("a")))
            assert done["request_counts"]["completed"] == 1
            assert len(served.speaker.jobs) == 4

    run(test())


def test_a_line_that_ends_workers_is_answered_with_that(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, [WorkerDied("it did")]) as served:
            done = await served.ended(await served.begun(row("a")))
            (bad,) = await served.rows(done["error_file_id"])
            assert (bad["response"]["status_code"], len(served.speaker.jobs)) == (503, 3)

    run(test())


def test_lines_leave_room_for_those_who_wait(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            served.room.is_wanted = True
            id = await served.begun(*(row(str(number)) for number in range(10)))
            while (await served.show(id))["status"] != "in_progress":
                pass
            assert served.speaker.jobs == []
            served.room.is_wanted, served.room.taken = False, 4
            assert served.batches._turns.take({}, "m", "") is None
            served.room.taken = 0
            await served.speaker.next_job(3)  # half of eight places
            assert served.batches._turns.take({}, "m", "") is None
            assert {job.priority for job in served.speaker.jobs} == {-1}
            for number in range(10):
                say(await served.speaker.next_job(number), *words("a"))
            assert (await served.ended(id))["request_counts"]["completed"] == 10

    run(test())


def test_a_cancelled_batch_keeps_what_was_answered(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            served.room.places = 2
            id = await served.begun(*(row(str(number)) for number in range(5)))
            say(await served.speaker.next_job(0), *words("a"))
            await served.speaker.next_job(1)
            cancelled = (await served.get(f"batches/{id}/cancel", "POST")).json
            assert (cancelled["status"], cancelled["output_file_id"]) == ("cancelling", None)
            done = await served.ended(id)
            assert served.speaker.jobs[1].cancelled
            assert (done["status"], done["cancelled_at"] is not None) == ("cancelled", True)
            assert done["request_counts"] == {"total": 5, "completed": 1, "failed": 4}
            assert [one["custom_id"] for one in await served.rows(done["output_file_id"])] == ["0"]
            assert {one["error"]["code"] for one in await served.rows(done["error_file_id"])} == {"batch_cancelled"}
            again = await served.get(f"batches/{id}/cancel", "POST")
            assert (again.status, again.json["error"]["code"]) == (409, "batch_has_ended")

    run(test())


def test_a_server_that_has_handed_over_cancels_no_batch(tmp_path: Path) -> None:
    """The next one runs it, and writes its files."""

    async def test() -> None:
        async with serving(tmp_path) as served:
            id = await served.begun(row("a"))
            await served.speaker.next_job()
            await served.batches.close()
            refused = await served.get(f"batches/{id}/cancel", "POST")
            assert (refused.status, b"when the next one answers" in refused.body) == (503, True)
            assert (await served.show(id))["status"] == "in_progress"
            assert not served.batches._active

    run(test())


def test_a_batch_whose_window_ends_has_partial_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with serving(tmp_path) as served:
            served.room.places = 2
            id = await served.begun(*(row(str(number)) for number in range(3)))
            say(await served.speaker.next_job(0), *words("a"))
            await served.speaker.next_job(1)
            run = served.batches._active[id]
            run.batch = run.batch._replace(head=msgspec.structs.replace(run.batch.head, end=0.0))
            assert run._pass is not None
            run._pass.wake()
            done = await served.ended(id)
            assert (done["status"], done["expired_at"] is not None) == ("expired", True)
            assert done["request_counts"] == {"total": 3, "completed": 1, "failed": 2}
            assert {one["error"]["code"] for one in await served.rows(done["error_file_id"])} == {"batch_expired"}

    run(test())


def test_a_batch_whose_window_ended_is_expired_when_that_is_told_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, fails = BatchBook.save, [StoreUnavailable("the disk is full")]

    async def failing(self: BatchBook, batch: KeptBatch, head: BatchHead, *also: Any) -> KeptBatch:
        if head.state == "expired" and fails:
            raise fails.pop()
        return await save(self, batch, head, *also)

    monkeypatch.setattr(BatchBook, "save", failing)

    async def test() -> None:
        async with serving(tmp_path) as served:
            id = await served.begun(row("a"))
            await served.speaker.next_job(0)
            run = served.batches._active[id]
            run.batch = run.batch._replace(head=msgspec.structs.replace(run.batch.head, end=0.0))
            assert run._pass is not None
            run._pass.wake()
            done = await served.ended(id)
            assert (done["status"], done["completed_at"], fails) == ("expired", None, [])
            assert done["request_counts"] == {"total": 1, "completed": 0, "failed": 1}

    run(test())


async def kill(served: Served) -> None:
    """End the server's tasks in the middle."""
    await served.batches.close()


def test_a_batch_goes_on_after_a_restart_without_double_lines(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as first:
            first.room.places = 8
            id = await first.begun(*(row(str(number)) for number in range(6)))
            for number in range(4):
                say(await first.speaker.next_job(number), *words("a"))
            while (await first.show(id))["request_counts"]["completed"] < 4:
                await first.speaker.next_job(4)
            output = first.batches._active[id].batch.head.output
        path = tmp_path / "files" / output
        assert path.read_bytes().count(b"\n") == 4
        path.write_bytes(path.read_bytes() + b'{"custom_id": "5", "hal')  # a disk that had not all of it
        async with serving(tmp_path, words("b")) as second:
            done = await second.ended(id)
            assert done["request_counts"] == {"total": 6, "completed": 6, "failed": 0}
            rows = await second.rows(done["output_file_id"])
            assert [one["custom_id"] for one in rows] == list("012345")
            assert len(second.speaker.jobs) == 2

    run(test())


@pytest.mark.parametrize("state", ["validating", "cancelling", "finalizing"])
def test_a_batch_goes_on_from_each_state(tmp_path: Path, state: str) -> None:
    async def test() -> None:
        async with serving(tmp_path, begins=False) as first:
            file = await first.upload(jsonl(row("a")))
            first.batches.begin(first.speaker.app.direct())
            first.batches._is_paused = True
            id = (await first.create(file))["id"]
            batch = await first.batches.book.find(id, "")
            head = batch.head if state == "validating" else batch.head.into(state, 1.0)  # type: ignore[arg-type]
            if state == "finalizing":
                head = msgspec.structs.replace(head, total=1, output="file-o", error="file-e")
                (tmp_path / "files" / "file-o").write_bytes(jsonl({"custom_id": "a"}))
            await first.batches.book.save(batch, head)
        async with serving(tmp_path, words("b")) as second:
            done = await second.ended(id)
            expected = "cancelled" if state == "cancelling" else "completed"
            assert (done["status"], done["request_counts"]["completed"]) == (expected, int(state != "cancelling"))

    run(test())


def test_a_full_disk_holds_a_batch_up_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        tries: list[int] = []
        write = LineFiles.write

        def full(self: LineFiles, outcomes: Any) -> None:
            tries.append(1)
            if len(tries) < 4:
                raise ServiceUnavailable("No space left on device.")
            write(self, outcomes)

        monkeypatch.setattr(LineFiles, "write", full)
        async with serving(tmp_path, words("a")) as served:
            done = await served.ended(await served.begun(row("a"), row("b")))
            assert (done["status"], done["request_counts"]["completed"]) == ("completed", 2)
            assert len(await served.rows(done["output_file_id"])) == 2

    run(test())


def test_what_a_server_before_has_taken_meanwhile_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that hands over answers the requests that it has, while another one has begun."""
    monkeypatch.setattr("msx_frontend.batches.runner.LOOK_EVERY", 0.0)

    async def test() -> None:
        async with serving(tmp_path) as old:
            old.batches.pause()
            async with serving(tmp_path, words("a")) as new:
                id = await old.begun(row("a"))
                while not (listed := (await new.get("batches")).json["data"]):
                    pass
                done = await new.ended(id)
                assert (listed[0]["id"], done["status"]) == (id, "completed")

    run(test())


def test_a_look_reads_only_what_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[str, str]] = []

    def reads(record: Record) -> KeptBatch:
        read.append((record.id, threading.current_thread().name))
        return batch_of(record)

    async def test() -> None:
        async with serving(tmp_path, words("a")) as old, serving(tmp_path) as new:
            await old.ended(await old.begun(row("a")))
            await new.batches.book.look()
            monkeypatch.setattr("msx_frontend.batches.book.batch_of", reads)
            id = await old.begun(row("a"))
            await new.batches.book.look()
            await new.batches.book.look()
            assert (read, len(new.batches.batches(""))) == ([(id, "msx-store")], 2)

    run(test())


def test_what_a_server_before_accepts_is_known_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as old:
            old.batches.pause()
            async with serving(tmp_path, words("a")) as new:
                file = await old.upload(jsonl(row("a")))
                assert (await new.get(f"files/{file}")).json["bytes"] == len(jsonl(row("a")))
                id = await old.begun(row("a"))
                assert (await new.show(id))["status"] == "validating"
                assert (await new.get(f"batches/{id}/cancel", "POST")).json["status"] == "cancelling"
                assert (await new.ended(id))["status"] == "cancelled"
                other = await old.upload(jsonl(row("a")))
                done = await new.ended((await new.create(other))["id"])
                assert done["request_counts"] == {"total": 1, "completed": 1, "failed": 0}
                assert (await new.get("files/x")).status == (await new.get("batches/x")).status == 404

    run(test())


def test_an_input_that_is_gone_fails_its_batch(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, begins=False) as first:
            file = await first.upload(jsonl(row("a")))
            first.batches.begin(first.speaker.app.direct())
            first.batches._is_paused = True
            id = (await first.create(file))["id"]
        (tmp_path / "files" / file).unlink()
        async with serving(tmp_path) as second:
            done = await second.ended(id)
            assert (done["status"], done["errors"]["data"][0]["code"]) == ("failed", "unreadable_file")
            assert str(tmp_path) not in done["errors"]["data"][0]["message"]

    run(test())


async def half_done(folder: Path) -> str:
    """The id of a batch of four lines, the last of which is long, of which a server has answered two."""
    async with serving(folder) as served:
        id = await served.begun(*map(row, "012"), row("3", {"prompt": "x" * 1000}))
        for number in range(2):
            say(await served.speaker.next_job(number), *words("a"))
        while (await served.show(id))["request_counts"]["completed"] < 2:
            await served.speaker.next_job(2)
    return id


def test_a_begun_batch_that_fails_keeps_what_was_answered(tmp_path: Path) -> None:
    async def test() -> None:
        id = await half_done(tmp_path)
        async with serving(tmp_path, words("a"), longest=500) as served:
            done = await served.ended(id)
            assert (done["status"], done["request_counts"]["completed"] >= 2) == ("failed", True)
            assert "500 bytes (max_request_size)" in done["errors"]["data"][0]["message"]
            assert [one["custom_id"] for one in await served.rows(done["output_file_id"])][:2] == ["0", "1"]
            assert len((await served.get("files")).json["data"]) == 2

    run(test())


@pytest.mark.parametrize("module", ["batch_run.check_file", "line_feed.rows"])
def test_a_disk_that_fails_for_a_moment_holds_a_batch_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    fails = [OSError(24, "Too many open files")]

    def unreadable(*asked: Any) -> Any:
        if fails:
            raise fails.pop()
        return works(*asked)

    path = f"msx_frontend.batches.{module}"
    works = pkgutil.resolve_name(path)
    monkeypatch.setattr(path, unreadable)

    async def test() -> None:
        async with serving(tmp_path, words("a")) as served:
            done = await served.ended(await served.begun(row("a"), row("b")))
            assert (done["status"], done["request_counts"]["completed"], fails) == ("completed", 2, [])

    run(test())


def test_replies_become_lines_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def made(*asked: Any) -> LineOutcome:
        threads.append(threading.current_thread())
        return answered(*asked)

    monkeypatch.setattr("msx_frontend.batches.line_pass.answered", made)

    async def test() -> None:
        async with serving(tmp_path, words("a")) as served:
            done = await served.ended(await served.begun(row("a"), row("b")))
            assert (done["request_counts"]["completed"], len(threads)) == (2, 2)
            assert threading.main_thread() not in threads

    run(test())


def test_replies_without_room_are_told(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a" * 3000), limits=LIMITS._replace(size=2000)) as served:
            done = await served.ended(await served.begun(row("a"), row("b")))
            assert done["request_counts"] == {"total": 2, "completed": 0, "failed": 2}
            errors = await served.rows(done["error_file_id"])
            assert {one["error"]["code"] for one in errors} == {"reply_not_kept"}
            assert "2000 bytes (files_size)" in errors[0]["error"]["message"]
            input, output = (await served.get("files")).json["data"]
            assert served.shelf.room("") == 2000 - input["bytes"] - output["bytes"]

    run(test())


def test_a_key_has_so_many_batches(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path, words("a"), most=1) as served:
            file = await served.upload(jsonl(row("a")))
            await served.create(file)
            assert "at most 1 batches" in (await served.create(file, status=400))["message"]

    run(test())


def test_batches_belong_to_the_key_that_made_them(tmp_path: Path) -> None:
    keys = {"Bearer ann": some_key("ann"), "Bearer bob": some_key("bob")}

    def key_of(owner: str) -> Any:
        raise InvalidKey("The key was withdrawn.")

    async def test() -> None:
        async with serving(tmp_path, words("a"), check_token=lambda t: keys[t or ""], key_of=key_of) as served:
            ann: dict[str, Any] = {"authorization": "Bearer ann"}
            bob: dict[str, Any] = {"authorization": "Bearer bob"}
            file = await served.upload(jsonl(row("a")), **ann)
            asked = {"input_file_id": file, "endpoint": PATH, "completion_window": "24h"}
            assert (await served.get("batches", "POST", asked, **bob)).status == 404
            id = (await served.get("batches", "POST", asked, **ann)).json["id"]
            while served.batches._active:
                await served.get("batches", **ann)
            assert (await served.get(f"batches/{id}", **bob)).status == 404
            assert (await served.get(f"batches/{id}/cancel", "POST", **bob)).status == 404
            assert (await served.get("batches", **bob)).json["data"] == []
            done = (await served.get(f"batches/{id}", **ann)).json
            content = await served.speaker.begin(
                f"/v1/files/{done['error_file_id']}/content", None, "GET", **ann
            ).finish()
            assert msgspec.json.decode(content.body)["response"]["status_code"] == 401  # its key was withdrawn

    run(test())


def test_batches_run_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msx_frontend.batches.runner.AT_ONCE_OF_OWNER", 1)

    async def test() -> None:
        async with serving(tmp_path) as served:
            ids = [await served.begun(row("a")) for _ in range(3)]
            assert list(served.batches._active) == ids[:1]
            assert (await served.get(f"batches/{ids[2]}/cancel", "POST")).json["status"] == "cancelling"
            for number in range(2):
                say(await served.speaker.next_job(number), *words("a"))
            await served.ended(ids[1])
            assert [(await served.show(id))["status"] for id in ids] == ["completed", "completed", "cancelled"]
            listed = (await served.get("batches?limit=2")).json
            assert ([one["id"] for one in listed["data"]], listed["has_more"]) == ([ids[2], ids[1]], True)

    run(test())


def test_a_batch_without_room_for_its_lines_leaves_its_place_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its model sleeps, say, for as long as its window."""
    monkeypatch.setattr("msx_frontend.batches.runner.AT_ONCE_OF_OWNER", 1)

    async def test() -> None:
        async with serving(tmp_path) as served:
            served.room.is_wanted = True
            ids = [await served.begun(row("a")) for _ in range(6)]
            await until(lambda: served.batches._active[ids[0]]._pass is not None)
            served.batches._next()
            assert list(served.batches._active) == ids[:1]
            monkeypatch.setattr("msx_frontend.batches.line_pass.STALLED", 0.0)
            for count in (2, 3, 4, 4):
                served.batches._next()
                assert list(served.batches._active) == ids[:count]
                last = served.batches._active[ids[count - 1]]
                await until(lambda run=last: run.is_stalled)  # type: ignore[misc]

    run(test())
