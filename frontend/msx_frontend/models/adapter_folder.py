"""The folder from which adapters may be loaded while models run."""

from pathlib import Path

from msx_core.service_errors import BadRequest
from msx_frontend.config import ServerConfig
from msx_frontend.management_errors import AdapterNotFound

FILES = ("adapter_config.json", "adapter_model.safetensors")


class AdapterFolder:
    """The key `adapters_path`."""

    def __init__(self, config: ServerConfig) -> None:
        self._root, self._clustered = config.adapters_path, config.cluster_address is not None

    def find(self, path: str) -> Path:
        """The adapter's folder, absolute and without links. It blocks. Raises BadRequest, AdapterNotFound."""
        if self._root is None:
            raise BadRequest(
                "Adapters are not loaded while models run: adapters_path in the server's configuration names the "
                "folder from which they may be."
            )
        if self._clustered:
            raise BadRequest(
                "Adapters are not loaded in a cluster, whose nodes do not see this machine's folders: pack them."
            )
        if "://" in path:
            raise BadRequest(f"lora_path: {path[:80]} is a URL; fetch the adapter into adapters_path first.")
        return _found(self._root.resolve(), path)


def _found(root: Path, path: str) -> Path:
    try:
        folder = (root / path).resolve()
        inside = [folder, *((folder / name).resolve() for name in FILES)]
        if not all(one.is_relative_to(root) for one in inside):
            raise BadRequest(f"lora_path: {path[:80]} is outside of the folder that adapters_path names.")
        missing = next((one.name for one in inside[1:] if not one.is_file()), None)
    except (OSError, ValueError, RuntimeError) as error:  # links in a circle, names that are too long, zeros
        raise BadRequest(f"lora_path: {path[:80]!r} cannot be read: {error}") from None
    if missing is not None:
        raise AdapterNotFound.at(path[:80], missing)
    return folder
