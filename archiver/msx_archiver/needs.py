"""Checks that an archive has what its handler needs: what would be missing on the server is reported when it is
packed."""

from collections.abc import Collection
from dataclasses import asdict

from msx_archiver.errors import PackError
from msx_archiver.handler_source import PACKED_WITH, source_of, stated
from msx_archiver.options import PackOptions
from msx_archiver.python_files import HandlerFile


def check_needs(handler: HandlerFile, options: PackOptions, files: Collection[str]) -> None:
    """Compares `files` of the archive with `packed_with` in the handler's source. Raises PackError."""
    tree = source_of(handler)
    for need in (stated(tree, handler.name, PACKED_WITH) if tree is not None else None) or ():
        if need.startswith("--"):
            if not asdict(options).get(need.strip("-").replace("-", "_")):
                raise PackError(f"Handler '{handler.name}' needs {need}, which is not given.")
        elif need not in files:
            raise PackError(f"Handler '{handler.name}' needs the file {need} in the archive: give it by --extra-files.")
