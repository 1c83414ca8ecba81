"""`msx-serve PATH`: what lies there is served, and again when it has changed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from msx_client import ChatReply, Client
from tests.e2e.server import wait_until
from tests.e2e.test_pages import FEW_GRAPHS
from tests.forked import ForkingPopen, run_forked
from tests.gguf_models import small
from tests.mindspore_scripts import run_mindspore

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

ANSWERS = """
from words import WORD

def handle(data, context):
    return [WORD for _ in data]
"""


class Served:
    def __init__(self, process: subprocess.Popen[str], folder: Path, output: Path) -> None:
        self.process, self._folder, self._output = process, folder, output

    @property
    def said(self) -> str:
        return self._output.read_text()

    def wait_said(self, words: str, times: int = 1) -> None:
        wait_until(lambda: self.said.count(words) >= times, words, lambda: self.said)

    def chat(self, model: str, text: str) -> ChatReply:
        with self._client() as client:
            return client.chat(model, [{"role": "user", "content": text}], temperature=0)

    def _client(self) -> Client:
        found = re.search(r"predict +(http://[^/]+)/", self.said)
        assert found is not None
        return Client(found[1], key_file=self._folder / "key_file.json")

    def ask(self, model: str) -> bytes:
        with self._client() as client:
            answer = client.predict(model, b"x")
        return answer if isinstance(answer, bytes) else str(answer).encode()


@contextmanager
def served(folder: Path, *arguments: str, **more: str) -> Iterator[Served]:
    """In `folder`; its temporary files are in a folder of their own, which is empty at the end."""
    with tempfile.TemporaryDirectory(prefix="msx-test-") as temporary:
        output = folder / "output.txt"
        command = [sys.executable, "-m", "msx_frontend.cli.main", *arguments, "--port", "0"]
        env = {**os.environ, "TMPDIR": temporary, **more}
        env.pop("LOG_LOCATION", None)
        with output.open("w") as file:
            process = ForkingPopen(command, cwd=folder, stdout=file, stderr=subprocess.STDOUT, text=True, env=env)
        try:
            yield Served(process, folder, output)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)
        assert os.listdir(temporary) == []


def write(file: Path, text: str) -> None:
    """As editors do: another file takes its place."""
    other = file.with_suffix(".new")
    other.write_text(text)
    other.replace(file)


def test_a_handler_is_served_and_loaded_again(tmp_path: Path) -> None:
    write(tmp_path / "answers.py", ANSWERS)
    write(tmp_path / "words.py", "WORD = 'one'")
    with served(tmp_path, "answers.py", "--reload") as server:
        server.wait_said("answers is ready.")
        assert "answers.py (a handler, with words.py beside it, which it imports)" in server.said
        assert "curl -H" in server.said
        assert server.ask("answers") == b"one"
        write(tmp_path / "words.py", "WORD = 'two'")
        server.wait_said("answers is ready.", 2)
        assert server.ask("answers") == b"two"
        write(tmp_path / "words.py", "WORD = nothing_such")
        server.wait_said("The old answers goes on.")
        assert "NameError: name 'nothing_such' is not defined" in server.said
        assert server.ask("answers") == b"two"
        write(tmp_path / "words.py", "WORD = 'four'")
        server.wait_said("answers is ready.", 3)
        assert server.ask("answers") == b"four"
    assert server.process.returncode == 0
    assert not (tmp_path / "key_file.json").exists()


def test_a_model_that_no_engine_serves(tmp_path: Path) -> None:
    model = tmp_path / "olmo"
    model.mkdir()
    write(model / "config.json", '{"model_type": "falcon_h1", "architectures": ["FalconH1ForCausalLM"]}')
    write(model / "model.safetensors", "")
    with served(tmp_path, "olmo") as server:
        assert server.process.wait(60) == 1
        assert "MSX's own engine does not know 'falcon_h1', and no interpreter of this server has vLLM" in server.said
        assert "is ready" not in server.said


def test_a_folder_with_its_configuration(tmp_path: Path) -> None:
    model = tmp_path / "my model"
    model.mkdir()
    write(
        model / "handler.py",
        "def handle(data, context):\n    return [str(context.model_yaml_config['word']) for _ in data]",
    )
    write(model / "model-config.yaml", "word: seven")
    with served(tmp_path, "my model", "--wait", "--workers", "2") as server:
        server.wait_said("Ctrl-C ends it.")
        assert server.ask("my-model") == b"seven"
        assert "a folder with the handler handler.py, and the model-config.yaml beside it" in server.said


def test_a_handler_that_cannot_be_loaded(tmp_path: Path) -> None:
    """Without --reload nobody waits for it to become right."""
    write(tmp_path / "bad.py", "import nothing_such")
    with served(tmp_path, "bad.py") as server:
        assert server.process.wait(60) == 1
    assert "No module named 'nothing_such'" in server.said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("echo.mar", "--reload"), "--reload: only for a PATH that is served as it is"),
        (("empty",), "neither handler.py, nor exactly one *.py"),
        (("two",), "neither handler.py, nor exactly one *.py or one *.mindir file"),
    ],
)
def test_what_cannot_be_served(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "two").mkdir()
    for name in ("a.mindir", "b.mindir"):
        (tmp_path / "two" / name).touch()
    command = [sys.executable, "-m", "msx_frontend.cli.main", *arguments]
    done = run_forked(command, cwd=tmp_path)
    assert done.returncode
    assert words in done.stderr


EXPORT = """
import mindspore as ms
net = ms.nn.Dense(3, 2, weight_init="ones", bias_init="ones")
ms.export(net, ms.Tensor(shape=[1, 3], dtype=ms.float32), file_name="net", file_format="MINDIR")
"""


@pytest.mark.mindspore
def test_a_mindir(tmp_path: Path) -> None:
    """The line for curl that it prints works."""
    pytest.importorskip("mindspore")
    (tmp_path / "export.py").write_text(EXPORT)
    run_mindspore(tmp_path / "export.py", folder=tmp_path)
    with served(tmp_path, "net.mindir", "--set", "default_workers_per_model=1") as server:
        server.wait_said("net is ready.")
        (line,) = [line.strip() for line in server.said.splitlines() if line.strip().startswith("curl ")]
        done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout) == {"output_0": [[1.0, 1.0]]}


@pytest.mark.mindspore
def test_a_gguf_file(tmp_path: Path) -> None:
    """A model whose weights are zeros says its first token, which ends the text."""
    pytest.importorskip("mindspore")
    small(tmp_path / "small.gguf")
    write(tmp_path / "model-config.yaml", FEW_GRAPHS)
    with served(tmp_path, "small.gguf") as server:
        server.wait_said("small is ready.")
        assert "small.gguf (a language model in a GGUF file)" in server.said
        reply = server.chat("small", "yes")
    assert (reply.content, reply.finish_reason) == ("", "stop")
