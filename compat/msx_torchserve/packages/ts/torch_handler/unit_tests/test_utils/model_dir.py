"""`ts.torch_handler.unit_tests.test_utils.model_dir`: files of a model for a handler's test."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import httpx

CACHE = ".cache"
"""A folder in the current one."""


def download_model(model_url: str, model_dir: Path) -> None:
    """Write the file of the URL to `model.pt`; it is fetched once. Raises httpx.HTTPError."""
    cached = Path(CACHE) / Path(urlsplit(model_url).path).name
    if not cached.exists():
        cached.parent.mkdir(exist_ok=True)
        part = cached.with_name(f"{cached.name}.part")
        with httpx.stream("GET", model_url, follow_redirects=True) as reply, part.open("wb") as file:
            reply.raise_for_status()
            for data in reply.iter_bytes():
                file.write(data)
        part.rename(cached)
    shutil.copy(cached, Path(model_dir) / "model.pt")


def copy_files(src_dir: Path, dst_dir: Path, files: Mapping[str, str]) -> None:
    """Copy files, by their names there, to the names here."""
    for src_file, dst_file in files.items():
        shutil.copyfile(Path(src_dir) / src_file, Path(dst_dir) / dst_file)
