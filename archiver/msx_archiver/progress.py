"""A progress bar on terminals; silent in pipes."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from msx_archiver.copying import Progress, ignore


@contextmanager
def progress_bar(label: str, total: int) -> Iterator[Progress]:
    """A function to be called with numbers of bytes; it draws on stderr if that is a terminal."""
    if not sys.stderr.isatty():
        yield ignore
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    columns = [TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()]
    with Bars(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(label, total=total)
        yield lambda done: bars.advance(task, done)
