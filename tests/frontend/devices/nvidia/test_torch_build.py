"""Builds of torch, as their `torch/version.py` tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_frontend.devices.nvidia.torch_build import check_torch, torch_in
from msx_frontend.findings import Level

DRIVER = 12040


def install_torch(folder: Path, version: str, cuda: str) -> Path:
    """As its build writes it."""
    (folder / "torch").mkdir(parents=True)
    lines = ["from typing import Optional", "", "__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']"]
    lines += [f"__version__ = '{version}'", "debug = False", cuda, "git_version = 'e2d1'", "hip: Optional[str] = None"]
    (folder / "torch" / "version.py").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize(
    ("cuda", "level", "found"),
    [
        ("cuda: Optional[str] = '12.6'", Level.OK, "2.7.1 in {}, built with CUDA 12.6"),
        ("cuda = '11.8'", Level.OK, "2.7.1 in {}, built with CUDA 11.8"),
        (
            "cuda: Optional[str] = None",
            Level.WARNING,
            "2.7.1 in {} was built without CUDA: handlers compute on the CPU",
        ),
        ("cuda = None", Level.WARNING, "2.7.1 in {} was built without CUDA: handlers compute on the CPU"),
        (
            "cuda: Optional[str] = '13.0'",
            Level.WARNING,
            "2.7.1 in {} was built with CUDA 13.0, and the driver takes CUDA 12 at most",
        ),
    ],
)
def test_a_build(tmp_path: Path, cuda: str, level: Level, found: str) -> None:
    (finding,) = check_torch([install_torch(tmp_path, "2.7.1", cuda)], DRIVER)
    assert (finding.level, finding.found) == (level, found.format(tmp_path))
    assert bool(finding.remedy) == (level is not Level.OK)


def test_each_folder_has_its_own(tmp_path: Path) -> None:
    own = install_torch(tmp_path / "own", "2.7.1+cpu", "cuda: Optional[str] = None")
    models = install_torch(tmp_path / "models", "2.7.1+cu126", "cuda: Optional[str] = '12.6'")
    found = list(check_torch([own, tmp_path / "none", models], DRIVER))
    assert [one.level for one in found] == [Level.WARNING, Level.OK]


def test_a_driver_that_does_not_tell_its_cuda(tmp_path: Path) -> None:
    (finding,) = check_torch([install_torch(tmp_path, "2.7.1", "cuda: Optional[str] = '13.0'")], 0)
    assert finding.level is Level.OK


def test_a_file_that_is_not_torchs(tmp_path: Path) -> None:
    assert torch_in(tmp_path) is None
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "version.py").write_bytes(b"\xff\x00 = ")
    build = torch_in(tmp_path)
    assert build is not None
    assert (build.version, build.cuda) == ("of unknown version", "")
