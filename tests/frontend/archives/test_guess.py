"""Kinds of paths that `msx-serve PATH` recognizes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msx_frontend.archives import guess as guesses
from msx_frontend.archives.guess import GuessError, guess, is_unpacked, name_of
from msx_frontend.archives.model_folder import made_folder
from msx_frontend.cli.serve.file_watch import seen


def touch(folder: Path, *names: str, text: str = "") -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_what_is_served_as_it_is(tmp_path: Path) -> None:
    touch(tmp_path, "net.mindir", "handler.py", "echo.mar", "archive/MAR-INF/MANIFEST.json", "folder/x")
    found = {
        name: is_unpacked(tmp_path / name)
        for name in ("net.mindir", "handler.py", "echo.mar", "archive", "folder", "no")
    }
    assert found == {
        "net.mindir": True,
        "handler.py": True,
        "echo.mar": False,
        "archive": False,
        "folder": True,
        "no": False,
    }


@pytest.mark.parametrize(("name", "expected"), [("my net.mindir", "my-net"), ("a.b.py", "a.b"), ("--.py", "model")])
def test_names(tmp_path: Path, name: str, expected: str) -> None:
    touch(tmp_path, name)
    assert name_of(tmp_path / name) == expected


def test_a_mindir_with_its_weights(tmp_path: Path) -> None:
    touch(tmp_path, "net.mindir", "net_variables/data_0", "net_variables/._data_0", "other.py", "model-config.yaml")
    found = guess(tmp_path / "net.mindir")
    assert (found.handler, found.serialized, found.config) == ("mindir", "net.mindir", True)
    assert sorted(found.files) == ["model-config.yaml", "net.mindir", "net_variables/data_0"]
    touch(tmp_path, "net_graph.mindir", "net.expected.npz")
    assert sorted(guess(tmp_path / "net_graph.mindir").files) == [
        "model-config.yaml",
        "net.expected.npz",
        "net_graph.mindir",
        "net_variables/data_0",
    ]


def test_a_handler_with_what_it_imports(tmp_path: Path) -> None:
    touch(tmp_path, "h.py", text="import json, a\nfrom b.c import d\n")
    touch(tmp_path, "a.py", text="import h\n")
    touch(tmp_path, "b.py", text="def (")
    touch(tmp_path, "other.py")
    assert sorted(guess(tmp_path / "h.py").files) == ["a.py", "b.py", "h.py"]


NETWORK = "from mindspore import nn\n\n\nclass Net(nn.Cell):\n    def construct(self, x):\n        return x\n"
HANDLERS = [
    "from msx_sdk import Handler\nclass Own(Handler): ...",
    "import ts\nclass Own(ts.torch_handler.base_handler.BaseHandler): ...",
    "def handle(data, context): ...",
    "class Own:\n    async def handle(self, data, context): ...",
]


def test_a_network_with_its_weights(tmp_path: Path) -> None:
    touch(tmp_path, "out/net_1.ckpt", "model-config.yaml")
    touch(tmp_path, "net.py", text=NETWORK)
    said = made_folder(tmp_path / "net.py", tmp_path / "made", tmp_path / "out" / "net_1.ckpt")
    assert said == "a network with the checkpoint net_1.ckpt, and the model-config.yaml beside it"
    model = json.loads((tmp_path / "made" / "MAR-INF" / "MANIFEST.json").read_text())["model"]
    assert (model["handler"], model["modelFile"], model["serializedFile"]) == ("checkpoint", "net.py", "net_1.ckpt")
    assert all((tmp_path / "made" / name).exists() for name in ("net.py", "net_1.ckpt", "model-config.yaml"))


@pytest.mark.parametrize("text", HANDLERS)
def test_a_handler_with_its_weights(tmp_path: Path, text: str) -> None:
    touch(tmp_path, "net.ckpt")
    touch(tmp_path, "own.py", text=text)
    found = guess(tmp_path / "own.py", tmp_path / "net.ckpt")
    assert (found.handler, found.model_file, found.serialized) == ("own.py", None, "net.ckpt")
    assert (found.said, sorted(found.files)) == ("a handler, and net.ckpt", ["net.ckpt", "own.py"])


@pytest.mark.parametrize(
    ("path", "weights", "words"),
    [
        ("net.mindir", "net.ckpt", "only for the Python file of a network or a handler, which"),
        ("folder", "net.ckpt", "only for the Python file of a network or a handler, which"),
        ("net.py", "gone.ckpt", "is not a file"),
        ("net.py", "folder", "is not a file"),
    ],
)
def test_weights_of_something_else(tmp_path: Path, path: str, weights: str, words: str) -> None:
    touch(tmp_path, "net.mindir", "net.py", "net.ckpt", "folder/config.json", "folder/model.safetensors")
    with pytest.raises(GuessError, match=f"--weights .*{weights}: {words}"):
        made_folder(tmp_path / path, tmp_path / "made", tmp_path / weights)


@pytest.mark.parametrize(
    ("names", "handler", "serialized"),
    [
        (("handler.py", "net.py", "net.mindir"), "handler.py", "net.mindir"),
        (("own.py", "weights.ckpt", "deep/file.py"), "own.py", None),
        (("net.mindir", ".hidden", "__pycache__/x.pyc"), "mindir", "net.mindir"),
        (("net.mindir", "._net.mindir", "._handler.py"), "mindir", "net.mindir"),
    ],
)
def test_folders(tmp_path: Path, names: tuple[str, ...], handler: str, serialized: str | None) -> None:
    found = guess(touch(tmp_path, *names))
    assert (found.handler, found.serialized) == (handler, serialized)
    assert not any(name.startswith((".", "__")) for name in found.files)


def test_a_folder_that_nobody_understands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GuessError, match=r"it has neither handler\.py, nor exactly one"):
        guess(touch(tmp_path, "a.py", "b.py"))
    monkeypatch.setattr(guesses, "MOST_FILES", 1)
    with pytest.raises(GuessError, match="more than 1 files"):
        guess(tmp_path)


def test_the_folder_is_made_of_links(tmp_path: Path) -> None:
    source, made = touch(tmp_path / "source", "handler.py"), tmp_path / "made"
    assert made_folder(source, made) == "a folder with the handler handler.py"
    assert (made / "handler.py").is_symlink()
    manifest = json.loads((made / "MAR-INF" / "MANIFEST.json").read_text())
    assert manifest["model"]["modelName"] == "source"
    before = seen(made)
    (source / "handler.py").write_text("changed")
    assert seen(made) != before
    (source / "handler.py").unlink()
    assert list(seen(made).values()) == [(0, -1)]


def test_hugging_faces_layout(tmp_path: Path) -> None:
    touch(tmp_path / "tiny", "tokenizer.json", "model.safetensors")
    (tmp_path / "tiny" / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    assert made_folder(tmp_path / "tiny", tmp_path / "made") == "a language or embedding model in Hugging Face's layout"


def test_a_servable(tmp_path: Path) -> None:
    touch(tmp_path / "add", "servable_config.py")
    assert made_folder(tmp_path / "add", tmp_path / "made") == "a servable of MindSpore Serving"
