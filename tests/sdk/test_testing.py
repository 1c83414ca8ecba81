from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from msx_sdk import Handler, HandlerLoadError, InvalidInput
from msx_sdk.context import Context
from msx_sdk.mindspore import model_file
from msx_sdk.request import InferenceRequest, Part
from msx_sdk.testing import LocalModel

SERVICES = Path(__file__).parents[1] / "services"


class Shouts(Handler):
    def initialize(self, context: Context) -> None:
        super().initialize(context)
        self.mark = context.model_yaml_config.get("mark", "!")

    def inference(self, inputs: Any) -> Any:
        return [row["body"].upper() + self.mark for row in inputs]


def test_bodies_in_replies_out() -> None:
    with LocalModel(Shouts, config={"mark": "?"}) as model:
        first, second = model.predict(["a", "b"])
    assert (first.status, first.body, first.complete) == (200, b"A?", True)
    assert second.body == b"B?"


def test_bytes_json_and_whole_requests() -> None:
    def handle(data: Any, context: Context) -> Any:
        return [{name: repr(value) for name, value in row.items()} for row in data]

    request = InferenceRequest("mine", {"image": Part(b"\x00"), "k": Part(b"3", "text/plain")})
    with LocalModel(handle) as model:
        replies = model.predict([b"raw", {"x": [1]}, request])
    assert [reply.json() for reply in replies] == [
        {"body": "bytearray(b'raw')"},
        {"body": "{'x': [1]}"},
        {"image": "bytearray(b'\\x00')", "k": "'3'"},
    ]


def test_failures_headers_and_streams_are_seen() -> None:
    class Mixed(Handler):
        def handle(self, data: Any, context: Context) -> Any:
            context.set_response_content_type(1, "text/csv")
            assert context.get_request_header(0, "x-user") == "ann"
            yield [InvalidInput("field x"), "a,"]
            return ["", "b"]

    with LocalModel(Mixed) as model:
        bad, good = model.predict(["", ""], headers={"X-User": "ann"})
    assert bad.failure is not None
    assert (bad.status, bad.failure.message, bad.complete) == (400, "field x", False)
    assert (good.status, good.headers, good.chunks) == (200, {"content-type": "text/csv"}, [b"a,", b"b"])


def test_a_handler_of_an_archive_folder() -> None:
    with LocalModel("echo.py", SERVICES) as model:
        assert model.predict(["hi"])[0].body == b"hi"


def test_isolation_as_in_the_worker() -> None:
    with LocalModel("raise_on_bad.py", SERVICES) as model:
        assert [reply.status for reply in model.predict(["good", "bad"])] == [200, 400]
    with LocalModel("raise_on_bad.py", SERVICES, isolate=False) as model:
        assert [reply.status for reply in model.predict(["good", "bad"])] == [400, 400]


class AsyncLife:
    """Everything on one loop, as in the worker."""

    example = "warm"

    def __init__(self) -> None:
        self.seen = list[str]()
        self.closed = False

    async def initialize(self, context: Context) -> None:
        self.loop = asyncio.get_running_loop()

    async def handle(self, data: Any, context: Context) -> AsyncGenerator[Any, None]:
        assert asyncio.get_running_loop() is self.loop
        self.seen.append(data[0]["body"])
        yield [await context.run(str.upper, data[0]["body"])]

    async def close(self) -> None:
        assert asyncio.get_running_loop() is self.loop
        self.closed = True


def test_an_async_handler_lives_on_one_loop_and_is_warmed_up() -> None:
    handler = AsyncLife()
    with LocalModel(handler) as model:
        assert [reply.body for reply in model.predict(["a", "b"])] == [b"A", b"B"]
        assert model.predict(["c"])[0].complete
    assert handler.seen == ["warm", "a", "b", "c"]
    assert handler.closed


def test_a_failing_example_fails_the_entry() -> None:
    class Shown(Shouts):
        example = 5

    with pytest.raises(HandlerLoadError, match="failed on its example"), LocalModel(Shown):
        pass


def test_the_handler_is_closed() -> None:
    class Closes(Shouts):
        closed = False

        def close(self) -> None:
            type(self).closed = True

    with LocalModel(Closes) as model:
        model.predict(["a"])
    assert Closes.closed


class Scaled(Handler):
    def initialize(self, context: Context) -> None:
        super().initialize(context)
        self.factor = int(model_file(context).read_text()) + int(context.model_yaml_config.get("more", 0))

    def inference(self, inputs: Any) -> Any:
        return [row["body"] * self.factor for row in inputs]


def test_weights_and_a_config_file(tmp_path: Path) -> None:
    (tmp_path / "w.txt").write_text("3")
    (tmp_path / "c.yaml").write_text("more: 1\n")
    with LocalModel(Scaled, weights=tmp_path / "w.txt", config=tmp_path / "c.yaml") as model:
        assert model.predict([10])[0].json() == 40
    with pytest.raises(HandlerLoadError, match=r"none\.txt does not exist"):
        LocalModel(Scaled, weights=tmp_path / "none.txt")


@pytest.mark.parametrize("format", ["default", "tgz", "no-archive"])
def test_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    source = "from tests.sdk.test_testing import Scaled\n\n\nclass Packed(Scaled): ...\n"
    for name, text in {"scaled_handler.py": source, "w.txt": "3", "c.yaml": "more: 1\n"}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    options = PackOptions(
        model_name="scaled",
        handler="scaled_handler.py",
        serialized_file="w.txt",
        config_file="c.yaml",
        archive_format=format,
        export_path=tmp_path / "packed",
    )
    archive = pack(options)
    with LocalModel(archive) as model:
        assert model.context.model_name == "scaled"
        assert model.predict([10])[0].json() == 40
    with LocalModel(str(archive), config={"more": 2}) as model:
        assert model.predict([10])[0].json() == 50
    del model
    gc.collect()
    assert not list(tmp_path.glob("msx-local-*"))


NOISY = """
import os
from msx_sdk import Handler
from msx_sdk.testing import LocalModel

class Fails(Handler):
    def inference(self, inputs):
        self.context.logger.warning("a word")
        raise ValueError("wrong")

with LocalModel(Fails) as model:
    reply, _ = model.predict([1, 2])
    assert "ValueError: wrong" in reply.failure.traceback
print(os.environ["GLOG_v"])
"""


@pytest.mark.parametrize(("given", "level"), [({}, "3"), ({"GLOG_v": "1"}, "1")])
def test_it_is_quiet(given: dict[str, str], level: str) -> None:
    env = {name: value for name, value in os.environ.items() if name != "GLOG_v"} | given
    done = subprocess.run([sys.executable, "-c", NOISY], capture_output=True, text=True, env=env, check=True)
    assert (done.stdout, done.stderr) == (f"{level}\n", "")


def test_what_is_logged_reaches_the_logging_of_a_test(caplog: pytest.LogCaptureFixture) -> None:
    class Says(Handler):
        def inference(self, inputs: Any) -> Any:
            self.context.logger.warning("a word")
            return inputs

    with LocalModel(Says) as model:
        model.predict([1])
    assert caplog.messages == ["a word"]
