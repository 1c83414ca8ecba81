"""Paths of the inference listener that models have by their `routes:`."""

from collections.abc import Callable, Iterable

from msx_frontend.management_errors import Conflict
from msx_frontend.models.versions.model_version import ModelVersion


class OwnedPaths:
    def __init__(self) -> None:
        self.owners: dict[str, str] = {}
        """Each path, and the name of its model."""
        self._is_taken: Callable[[str], bool] = lambda path: False

    def keep_free(self, is_taken: Callable[[str], bool]) -> None:
        """No model may have a path of which this says that the server itself has it."""
        self._is_taken = is_taken

    def check(self, version: ModelVersion) -> None:
        """Raises Conflict for a path of its routes that the server or another model has."""
        for path in version.paths:
            if self.owners.get(path) not in (None, version.source.name):
                raise Conflict(
                    f"Path {path} of model {version.source.name} (routes) is already that of model {self.owners[path]}."
                )
            if self._is_taken(path):
                raise Conflict(f"Path {path} of model {version.source.name} (routes) is one of the server's own.")

    def find(self, versions: Iterable[ModelVersion]) -> None:
        """Give models the paths of these versions from now on."""
        found = {path: version.source.name for version in versions for path in version.paths}
        self.owners.clear()
        self.owners.update(found)
