"""What a handler cannot load without: what its archive would lack on the server is asked for when it is packed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict

from msx_archiver.errors import PackError
from msx_archiver.handler_source import PACKED_WITH, source_of, stated
from msx_archiver.options import PackOptions
from msx_archiver.python_files import HandlerFile


def check_needs(handler: HandlerFile, options: PackOptions, files: Collection[str]) -> None:
    """By what its source states as `packed_with`; `files` are the archive's. Raises PackError."""
    tree = source_of(handler)
    for need in (stated(tree, handler.name, PACKED_WITH) if tree is not None else None) or ():
        if need.startswith("--"):
            if not asdict(options).get(need.strip("-").replace("-", "_")):
                raise PackError(f"Handler '{handler.name}' needs {need}, which is not given.")
        elif need not in files:
            raise PackError(f"Handler '{handler.name}' needs the file {need} in the archive: give it by --extra-files.")
