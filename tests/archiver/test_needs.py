"""Requirements of a handler, checked when it is packed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from msx_archiver.errors import PackError
from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from tests.core.test_mindir import DATA

InFolder = Callable[..., Path]
OWN = "class H:\n    packed_with = ('--model-file', 'words.txt')\n    def handle(self, data, context): ...\n"


@pytest.fixture
def folder(in_folder: InFolder) -> Path:
    mindir = (DATA / "dynamic.mindir").read_bytes()
    return in_folder(
        net__py="class Net(nn.Cell): ...", w__ckpt=b"", m__mindir=mindir, config__json="{}", words__txt="", h__py=OWN
    )


@pytest.mark.parametrize(
    ("handler", "given", "lacking"),
    [
        ("mindir", {}, "--serialized-file, which is not given."),
        ("checkpoint", {}, "--model-file, which is not given."),
        ("checkpoint", {"model_file": "net.py"}, "--serialized-file, which is not given."),
        ("text_generation", {}, "the file config.json in the archive: give it by --extra-files."),
        (
            "text_generation",
            {"extra_files": "config.json"},
            "the file tokenizer.json in the archive: give it by --extra-",
        ),
        ("h.py", {"extra_files": "words.txt"}, "--model-file, which is not given."),
        ("h.py", {"model_file": "net.py"}, "the file words.txt in the archive"),
    ],
)
def test_what_is_lacking(folder: Path, handler: str, given: dict[str, str], lacking: str) -> None:
    with pytest.raises(PackError) as caught:
        pack(PackOptions(model_name="m", handler=handler, **given))  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"Handler '{handler}' needs {lacking}")
    assert not Path("m.mar").exists()


@pytest.mark.parametrize(
    ("handler", "given"),
    [
        ("mindir", {"serialized_file": "m.mindir"}),
        ("checkpoint", {"serialized_file": "w.ckpt", "model_file": "net.py"}),
        ("h.py", {"model_file": "net.py", "extra_files": "words.txt"}),
        ("image_classifier", {}),  # the name may mean TorchServe's
    ],
)
def test_what_is_enough(folder: Path, handler: str, given: dict[str, str]) -> None:
    assert pack(PackOptions(model_name="m", handler=handler, **given)).is_file()  # type: ignore[arg-type]
