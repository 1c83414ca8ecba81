"""A model's files that are not what their handler reads say so when they are packed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from msx_archiver.errors import PackError
from msx_archiver.options import PackOptions
from msx_archiver.sources import collect
from tests.archiver.conftest import HANDLER
from tests.core.test_file_kinds import ONNX, PARAMETER, POINTER

InFolder = Callable[..., Path]
NET = "from mindspore import nn\nclass Net(nn.Cell): ...\n"
THREE = f"{NET}class Other(nn.Cell): ...\nclass Third(nn.Cell): ...\n"
STAGES = "stages:\n  a: {handler: checkpoint, serializedFile: w.ckpt, modelFile: net.py}\n"


def collected(**options: str) -> None:
    collect(PackOptions(model_name="m", **options), Path("made"))  # type: ignore[arg-type]


def refused(**options: str) -> str:
    with pytest.raises(PackError) as caught:
        collected(**options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("handler", "name", "content", "words"),
    [
        ("mindir", "w.mindir", POINTER, "'w.mindir' is a pointer of Git LFS, not the file itself: run `git lfs pull`."),
        ("mindir", "w.mindir", ONNX, "w.mindir is not a MindIR file, it is an ONNX model: export the network by"),
        ("mindir", "w.onnx", ONNX, "w.onnx is not a MindIR file, it is an ONNX model"),
        ("mindir", "w.mindir", PARAMETER, "it is a checkpoint of MindSpore: give it the ending .ckpt."),
        ("mindir", "w.ckpt", PARAMETER, "w.ckpt is not a MindIR file, it is a checkpoint"),
        ("image_classifier", "w.mindir", b"IMOD", "it is an OM model"),
        ("checkpoint", "w.ckpt", b"<html>", "w.ckpt is an HTML page: download it again."),
        ("checkpoint", "w.safetensors", b"PK\x03\x04", "w.safetensors is not a safetensors file, it is a zip file"),
        ("checkpoint", "w.ckpt", ONNX, "w.ckpt is not a checkpoint of MindSpore, it is an ONNX model"),
        ("checkpoint", "w.pt", b"", "w.pt: --handler checkpoint reads files that end in .ckpt or .safetensors."),
        ("h.py", "w.pt", POINTER, "'w.pt' is a pointer of Git LFS"),
        ("h.py", "w.ckpt", b"<!doctype html>", "w.ckpt is an HTML page"),
    ],
)
def test_a_file_of_another_kind_is_named(
    in_folder: InFolder, handler: str, name: str, content: bytes, words: str
) -> None:
    in_folder(h__py=HANDLER, net__py=NET)
    Path(name).write_bytes(content)
    message = refused(handler=handler, serialized_file=name, model_file="net.py")
    assert words in message
    assert message.startswith("--serialized-file: ") or "MindIR" in message


@pytest.mark.parametrize("name", ["w.ckpt", "w.xml", "w.gz"])
def test_a_handler_of_users_knows_its_own_formats(in_folder: InFolder, name: str) -> None:
    content = {"w.ckpt": b"PK\x03\x04", "w.xml": b"<?xml", "w.gz": b"\x1f\x8b"}[name]
    in_folder(h__py=HANDLER)
    Path(name).write_bytes(content)
    collected(handler="h.py", serialized_file=name)


def test_a_pointer_among_the_extra_files(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER, tokenizer__json=POINTER)
    assert refused(handler="h.py", extra_files="tokenizer.json").startswith(
        "--extra-files: 'tokenizer.json' is a pointer of Git LFS"
    )


@pytest.mark.parametrize("handler", ["checkpoint", "image_classifier"])
def test_networks_of_which_none_is_named(in_folder: InFolder, handler: str) -> None:
    in_folder(net__py=THREE, w__ckpt=PARAMETER, c__yaml="model: {class: Other}")
    options = {"handler": handler, "serialized_file": "w.ckpt", "model_file": "net.py"}
    assert "found Net, Other, Third: name one as `model: {class: …}` in --config-file." in refused(**options)
    collected(config_file="c.yaml", **options)


def test_a_stage_is_checked_as_a_model_is(in_folder: InFolder) -> None:
    in_folder(net__py=THREE, w__ckpt=PARAMETER, c__yaml=STAGES)
    assert refused(config_file="c.yaml").startswith("--config-file: stages.a: net.py: expected a function create()")
    Path("net.py").write_text(NET)
    collected(config_file="c.yaml")
    Path("w.ckpt").write_bytes(ONNX)
    assert "--config-file: stages.a: w.ckpt is not a checkpoint of MindSpore" in refused(config_file="c.yaml")
