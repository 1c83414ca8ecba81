"""Whether an archive's handler overlaps, as far as its files tell."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from msx_archiver.outline import SourceUnknownError
from msx_archiver.overlap import KnownOverlap, known_overlap
from msx_archiver.reader import open_archive
from msx_core.config import parse_model_config
from tests.archiver.conftest import MANIFEST, write_folder

OWN = "from msx_sdk import Handler\nclass H(Handler):\n    overlap = {}\n    def initialize(self, context): ...\n"
OVERLAPS = KnownOverlap("", may_change=False)


def known(folder: Path, text: str, handler: str = "h.py", envelope: str = "", **keys: object) -> KnownOverlap:
    files = {"MAR-INF/MANIFEST.json": MANIFEST, "h.py": text.encode(), "beside.py": OWN.format(True).encode()}
    with open_archive(write_folder(folder / "m", files)) as archive:
        return known_overlap(archive, handler, parse_model_config(keys)[0], envelope)


@pytest.mark.parametrize("handler", ["mindir", "checkpoint", "image_classifier"])
def test_built_in_handlers_overlap(handler: str, tmp_path: Path) -> None:
    assert known(tmp_path, OWN, handler).sequential == ""


@pytest.mark.parametrize("handler", ["text_generation", "embedding", "servable"])
def test_other_built_in_handlers_do_not(handler: str, tmp_path: Path) -> None:
    assert known(tmp_path, OWN, handler).sequential.startswith("its handle() ")


@pytest.mark.parametrize("handler", ["h.py", "h", "h:H", "h.py:H", "of/another/folder/h.py"])
def test_a_file_of_the_archive(handler: str, tmp_path: Path) -> None:
    assert known(tmp_path, OWN.format(True), handler) == OVERLAPS


def test_a_class_of_another_file_of_the_archive(tmp_path: Path) -> None:
    text = "from beside import H\nclass Mine(H):\n    def preprocess(self, data): ..."
    assert known(tmp_path, text).sequential == "Mine overrides preprocess(), which may keep a request on self"
    assert known(tmp_path, text, overlap=True) == OVERLAPS


def test_the_configuration_decides_too(tmp_path: Path) -> None:
    text = OWN.format(True)
    assert known(tmp_path, text, overlap=False).sequential == "model-config.yaml has overlap: false"
    assert known(tmp_path, text, envelope="json").sequential == "service_envelope=json encloses each call"
    ranks = known(tmp_path, text, parallelType="tp", parallelLevel=2)
    assert ranks.sequential == "the ranks of its group make each call together"


@pytest.mark.parametrize(
    ("text", "handler", "unknown"),
    [
        ("class H(", "h.py", "h.py is not Python that can be read (SyntaxError)"),
        (OWN.format(True), "nothing", "the source of nothing is not here"),
        ("x = 1", "h.py", "handler 'h': expected a function handle(data, context) or one class"),
        ("import a\nclass H(a" + ".a" * 2000 + "): pass", "h.py", "its source is nested too deeply"),
    ],
)
def test_what_is_not_known(text: str, handler: str, unknown: str, tmp_path: Path) -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # Python's own: packages that other tests import raise it
    try:
        with pytest.raises(SourceUnknownError) as raised:
            known(tmp_path, text, handler)
    finally:
        sys.setrecursionlimit(limit)
    assert str(raised.value).startswith(unknown)
