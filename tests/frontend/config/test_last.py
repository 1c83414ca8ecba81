"""The configuration with which a server last came up, in the place of its file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from msx_frontend.config.last import last_settings
from msx_frontend.config.load import MOST_REMEMBERED, GivenSettings, load_settings
from msx_frontend.config.server_config import ServerConfigError

GOOD = b"default_workers_per_model=3\nvmargs=-Xmx1g\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A server with it does not come up."""
    (made := tmp_path / "ts.properties").write_bytes(GOOD + b"max_request_size=huge\n")
    return made


def loaded(content: bytes, file: Path | None, env: Mapping[str, str] | None = None) -> GivenSettings:
    fd = os.memfd_create("last")
    os.pwrite(fd, content, 0)
    model_store = None if file is None else file.parent
    settings = last_settings(fd, {"model_store": model_store}, file, env or {})
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    return settings


def test_messages_name_the_file(file: Path) -> None:
    """A descriptor of the server's would mean nothing to the reader."""
    settings = loaded(GOOD, file)
    assert settings.config.default_workers_per_model == 3
    not_read, vmargs = settings.notices
    assert not_read.startswith(f"{file}: is not read, because a server with it did not come up.")
    assert vmargs == f"{file}: vmargs: has no effect: MSX is not a Java program"
    assert (settings.file, settings.content) == (file, GOOD)


def test_a_file_that_is_the_same_is_not_complained_of(file: Path) -> None:
    """Something else has ended the frontend: the kernel's OOM killer, say."""
    file.write_bytes(GOOD)
    assert len(loaded(GOOD, file).notices) == 1


@pytest.mark.parametrize("is_there", [False, True])
def test_a_file_that_has_come_or_gone(is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server without a file came up, or with one that was removed."""
    monkeypatch.chdir(tmp_path)
    if is_there:
        (tmp_path / "config.properties").write_text("max_request_size=huge\n")
    settings = loaded(b"" if is_there else b"default_workers_per_model=3\n", None)
    assert settings.config.default_workers_per_model == (0 if is_there else 3)
    assert settings.notices[0].startswith("config.properties: is not read, ")


def test_content_that_is_wrong_as_well(file: Path) -> None:
    with pytest.raises(ServerConfigError, match=rf"^{file}: max_request_size: 'huge' is not an integer"):
        loaded(file.read_bytes(), file)


def test_a_file_is_read_once(tmp_path: Path) -> None:
    """The content that was read is remembered, also where the file can be read but once, or changes meanwhile."""
    os.mkfifo(pipe := tmp_path / "pipe")
    if not (writer := os.fork()):
        pipe.write_bytes(GOOD)
        os._exit(0)
    settings = load_settings({"model_store": tmp_path}, pipe, {})
    os.waitpid(writer, 0)
    assert (settings.config.default_workers_per_model, settings.content) == (3, GOOD)


def test_a_large_file_is_not_remembered(file: Path) -> None:
    file.write_bytes(GOOD + b"#" * MOST_REMEMBERED)
    assert load_settings({"model_store": file.parent}, file, {}).content is None
