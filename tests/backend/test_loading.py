from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msx_protocol import Drain, Loaded, LoadFailed, LoadProgress, Predict, encode_frame
from tests.backend.harness import Worker, lines_of, load_message, request, serving


def load(folder: Path, code: str, **options: Any) -> tuple[list[str], Loaded | LoadFailed, int]:
    """The phases, the outcome, and the exit status of a worker that is drained at once."""
    (folder / "model").mkdir()
    (folder / "model" / "h.py").write_text(code)
    with Worker(folder) as worker:
        worker.send(load_message(folder / "model", "h.py", **options))
        phases: list[str] = []
        while isinstance(message := worker.receive()[0], LoadProgress):
            phases.append(message.phase)
        if isinstance(message, Loaded):
            worker.send(Drain())
        return phases, message, worker.exit_status()


def test_the_phases_of_a_load(tmp_path: Path) -> None:
    code = """
from msx_sdk import Handler
class H(Handler):
    example = "warm"
    def initialize(self, context):
        context.report_progress("reading weights")
    def inference(self, inputs):
        print(inputs)
        return ["ok"]
"""
    phases, loaded, status = load(tmp_path, code)
    assert phases == ["importing the handler", "initializing", "reading weights", "warming up"]
    assert isinstance(loaded, Loaded)
    assert not loaded.is_async
    assert loaded.seconds > 0
    assert status == 0
    assert (tmp_path / "stdout").read_text() == "[{'body': 'warm'}]\n"


@pytest.mark.parametrize(("request_size", "response_size"), [(7, 9), (9, 7)])
def test_the_largest_body(tmp_path: Path, request_size: int, response_size: int) -> None:
    code = """
def initialize(context):
    assert context.info.largest_body == 9
def handle(data, context):
    return []
"""
    sizes = {"max_request_size": request_size, "max_response_size": response_size}
    assert isinstance(load(tmp_path, code, **sizes)[1], Loaded)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import not_installed_here", "ModuleNotFoundError: No module named 'not_installed_here'"),
        ("def handle(data, context", "SyntaxError: '(' was never closed (h.py, line 1)"),
        ("def handle(data, context): raise FileNotFoundError('weights.ckpt')", "FileNotFoundError: weights.ckpt"),
        ("import sys; sys.exit(3)", "the handler called sys.exit(3)"),
        ("x = 1", "HandlerLoadError: handler 'h.py': expected a function handle(data, context) or one class"),
        ("raise ValueError('half \\ud800')", "ValueError: half \\ud800"),
        ("async def initialize(context): 1 / 0\ndef handle(data, context): return []", "ZeroDivisionError"),
        ("async def initialize(context): 1 / 0\nasync def handle(data, context): return []", "ZeroDivisionError"),
        ("example = 1\nasync def handle(data, context): return [data[0]['no']]", "failed on its example (warmup-0)"),
    ],
)
def test_a_load_that_fails_says_why(tmp_path: Path, code: str, message: str) -> None:
    _, failed, status = load(tmp_path, code)
    assert isinstance(failed, LoadFailed)
    assert message in failed.message
    assert "Traceback (most recent call last)" in failed.traceback
    assert not failed.out_of_memory
    assert status == 1


def test_the_traceback_names_the_handlers_line(tmp_path: Path) -> None:
    _, failed, _ = load(tmp_path, "def helper():\n    return 1 / 0\nhelper()\n")
    assert isinstance(failed, LoadFailed)
    assert f'{tmp_path}/model/h.py", line 2, in helper' in failed.traceback


def test_memory_that_ran_out_is_marked(tmp_path: Path) -> None:
    _, failed, _ = load(tmp_path, "raise RuntimeError('Device out of memory')")
    assert isinstance(failed, LoadFailed)
    assert failed.out_of_memory


def test_the_yaml_can_switch_warming_up_off(tmp_path: Path) -> None:
    code = "example = 1\ndef handle(data, context):\n    return [1 / 0] if data else None\n"
    phases, loaded, _ = load(tmp_path, code, config={"warmup": False})
    assert isinstance(loaded, Loaded)
    assert phases == ["importing the handler", "initializing"]


def test_a_missing_folder_is_a_failed_load(tmp_path: Path) -> None:
    with Worker(tmp_path) as worker:
        worker.send(load_message(tmp_path / "gone", "h.py"))
        failed = worker.receive_loaded()
    assert isinstance(failed, LoadFailed)
    assert "gone" in failed.message


def test_the_handler_learns_who_it_is(tmp_path: Path) -> None:
    with serving(tmp_path, "env", rank=0, world_size=4, device_id=3) as worker:
        worker.predict("x")
        _, body = worker.receive()
        assert b'"rank": 0' in body
        assert b'"world_size": 4' in body
        assert b'"device_id": 3' in body


def test_the_working_folder_is_private_and_has_the_archives_files(tmp_path: Path) -> None:
    code = """
import json, os
labels = open("labels.txt").read()
def handle(data, context):
    open("scratch", "w").close()
    return [labels + os.getcwd()]
"""
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / "labels.txt").write_text("cat at ")
    (tmp_path / "archive" / "h.py").write_text(code)
    with Worker(tmp_path) as worker:
        worker.send(load_message(tmp_path / "archive", "h.py"))
        assert isinstance(worker.receive_loaded(), Loaded)
        worker.predict("x")
        assert worker.receive()[1] == f"cat at {tmp_path}/cwd".encode()
    assert sorted(path.name for path in (tmp_path / "archive").iterdir()) == ["h.py", "labels.txt"]
    assert (tmp_path / "cwd" / "scratch").exists()


@pytest.mark.parametrize("prefix", ["", "async "])
def test_requests_that_came_together_with_load_are_answered(tmp_path: Path, prefix: str) -> None:
    (tmp_path / "model").mkdir()
    code = f"{prefix}def handle(data, context): return [row['body'] for row in data]"
    (tmp_path / "model" / "h.py").write_text(code)
    head, body = request(1, "early")
    with Worker(tmp_path) as worker:
        frames = encode_frame(load_message(tmp_path / "model", "h.py")), encode_frame(Predict([head]), body)
        worker.data.sendall(b"".join((*frames, encode_frame(Drain()))))
        assert isinstance(worker.receive_loaded(), Loaded)
        assert worker.receive_all(1) == {1: [b"early", True]}
        assert worker.exit_status() == 0


def test_something_else_before_load_ends_the_worker(tmp_path: Path) -> None:
    with Worker(tmp_path) as worker:
        worker.send(Drain())
        assert worker.exit_status() == 1
        assert any("not Load" in entry["traceback"] for entry in worker.logged())


CLOSES = """
def handle(data, context): return [row["body"] for row in data]
def close():
    open("closed", "w").write("closed\\n")
    {end}
"""


@pytest.mark.parametrize("end", ["pass", "raise RuntimeError('no')", "import sys; sys.exit(5)"])
@pytest.mark.parametrize("prefix", ["", "async "])
def test_the_handler_is_closed_before_the_worker_ends(tmp_path: Path, prefix: str, end: str) -> None:
    code = CLOSES.format(end=end).replace("def ", f"{prefix}def ")
    with serving(tmp_path, code) as worker:
        assert worker.drain() == 0
        assert lines_of(worker.cwd / "closed") == ["closed"]
        assert any("close() failed" in entry["message"] for entry in worker.logged()) is (end != "pass")


OFFERS = """
from msx_sdk.generation import Capabilities
def capabilities(): return {offered}
async def handle(data, context): return [context.operation() + "|" + str(bytes(data[0]["body"]), "ascii")]
"""


def test_a_handler_tells_what_it_offers_and_learns_what_is_asked_for(tmp_path: Path) -> None:
    code = OFFERS.format(offered='Capabilities(generate=True, constraints=("regex",))')
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "h.py").write_text(code)
    with Worker(tmp_path) as worker:
        worker.send(load_message(tmp_path / "model", "h.py"))
        loaded = worker.receive_loaded()
        assert isinstance(loaded, Loaded)
        assert loaded.capabilities == {"generate": True, "constraints": ["regex"]}
        for number, operation in ((1, "generate"), (2, "")):
            head, body = request(number, b"x")
            head.operation = operation
            worker.send(Predict([head]), body)
            assert worker.receive_all(1)[number][0] == f"{operation}|x".encode()


@pytest.mark.parametrize("offered", ["{'generate': 3}", "object()", "[1]"])
def test_capabilities_of_a_wrong_kind_fail_the_load(tmp_path: Path, offered: str) -> None:
    _, failed, _ = load(tmp_path, OFFERS.format(offered=offered))
    assert isinstance(failed, LoadFailed)
    assert "capabilities() did not return a msx_sdk.generation.Capabilities" in failed.message


def test_an_attribute_of_that_name_is_the_handlers_own(tmp_path: Path) -> None:
    _, loaded, _ = load(tmp_path, "capabilities = ['walk']\ndef handle(data, context): return []")
    assert isinstance(loaded, Loaded)
    assert loaded.capabilities == {}


TWO = {"parallelType": "tp", "msrun": {"nproc-per-node": 2}}


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "parallel_types = ('pp',)\ndef handle(data, context): return data",
            "handler 'h.py' runs on several ranks with parallelType: pp, and model-config.yaml says tp: change it",
        ),
        (
            "class H:\n  parallel_types = ()\n  def initialize(self, _): ...\n  def handle(self, data, context): ...",
            "handler 'h.py' serves models of one rank, and model-config.yaml says parallelType: tp: leave out",
        ),
    ],
)
def test_a_handler_that_is_not_for_such_a_group(tmp_path: Path, code: str, message: str) -> None:
    _, failed, status = load(tmp_path, code, config=TWO, world_size=2)
    assert isinstance(failed, LoadFailed)
    assert message in failed.message
    assert status == 1
