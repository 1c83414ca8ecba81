"""Files of an archive, packed or not, for `LocalModel`.

The archiver, which unpacks archives, is above this package: an entry point names its function.
"""

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any, NamedTuple

from msx_core.entry_points import load_named
from msx_core.errors import HandlerLoadError
from msx_core.manifest import MANIFEST_PATH, Manifest

_SUFFIXES = (".mar", ".tar.gz", ".tgz", ".zip")


class LocalArchive(NamedTuple):
    """An unpacked archive."""

    folder: Path
    manifest: dict[str, Any]
    config: dict[str, Any]
    handler: str

    @property
    def name(self) -> str:
        return str(self.manifest["model"].get("modelName") or "local")


def is_archive(given: Any) -> bool:
    """Whether it is a file with an archive's suffix, or a folder with a manifest."""
    if not isinstance(given, (str, Path)):
        return False
    return str(given).endswith(_SUFFIXES) or (Path(given) / MANIFEST_PATH).is_file()


def unpacked(path: Path, owner: object) -> LocalArchive:
    """Unpacks the archive; its files exist as long as `owner`. Raises the archiver's ArchiveError, ConfigError,
    HandlerLoadError."""
    folder = path if path.is_dir() else _unpack(path, owner)
    manifest = Manifest.from_json((folder / MANIFEST_PATH).read_bytes())
    model = manifest.model
    config = read_config(folder / model.config_file) if model.config_file else {}
    if not model.handler:
        raise HandlerLoadError(f"{path}: its manifest names no handler")
    return LocalArchive(folder.resolve(), manifest.to_dict(), config, model.handler)


def read_config(file: str | Path) -> dict[str, Any]:
    """Reads a model-config.yaml. Raises ConfigError."""
    from msx_core.config import load_model_config  # reads YAML, which importing the SDK does not load

    return dict(load_model_config(file)[0].raw)


def given_files(**files: str | Path | None) -> dict[str, str]:
    """Entries of a manifest's `model` section with absolute paths. Raises HandlerLoadError if a file does not exist."""
    paths = {key: Path(file).resolve() for key, file in files.items() if file is not None}
    if missing := next((path for path in paths.values() if "{rank}" not in path.name and not path.is_file()), None):
        raise HandlerLoadError(f"{missing} does not exist")
    return {key: str(path) for key, path in paths.items()}


def _unpack(path: Path, owner: object) -> Path:
    """Unpacks with the same checks as the server."""
    folder = Path(tempfile.mkdtemp(prefix="msx-local-"))
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    unpack_to = load_named("msx.archives", "unpack")
    if unpack_to is None:
        raise HandlerLoadError("no installed package unpacks archives: install msx-serve")
    unpack_to(path, folder)
    return folder
