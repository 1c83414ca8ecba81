"""The files of an adapter, which others may write while the model reads them."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msx_core.generation.adapter_stamp import file_stamp
from msx_llm.adapters.adapter import Adapter
from msx_llm.adapters.peft import CONFIG, WEIGHTS
from msx_sdk.errors import HandlerLoadError


def stamp_of(name: str, folder: Path) -> str:
    """Differs when one of the files was written, or replaced. Raises HandlerLoadError for a file that is missing, or
    is not a regular one."""
    return "-".join(file_stamp(name, folder / file) for file in (CONFIG, WEIGHTS))


def check_unchanged(adapter: Adapter) -> None:
    """Raises HandlerLoadError."""
    if adapter.stamp and stamp_of(adapter.name, Path(adapter.folder)) != adapter.stamp:
        remedy = "load it again" if adapter.id else "restart the model's workers"
        raise HandlerLoadError(f"adapter {adapter.name}: its files have changed since it was loaded; {remedy}")


@contextmanager
def copy_of(name: str, path: Path, most: int) -> Iterator[Path]:
    """A copy in memory: a file that is mapped and made shorter would end the process. Raises HandlerLoadError."""
    with open(os.memfd_create("adapter"), "w+b") as copy:
        try:
            with path.open("rb") as file:
                if (size := os.fstat(file.fileno()).st_size) > most:
                    raise HandlerLoadError(
                        f"adapter {name}: {path.name} has {size} bytes; one of its r has at most {most} for this model"
                    )
                shutil.copyfileobj(file, copy)
        except OSError as error:
            raise HandlerLoadError(f"adapter {name}: {path.name} cannot be read: {error.strerror}") from None
        copy.flush()
        yield Path(f"/proc/self/fd/{copy.fileno()}")
