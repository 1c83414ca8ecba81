"""Read a `servable_config.py` in a process of its own: a start script does not import it.

`python -m mindspore_serving.server.distributed.declared FOLDER NAME DESCRIPTOR` writes it to the descriptor.
"""

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from msx_core.module_command import module_command
from msx_core.servables import load_servable
from msx_sdk.errors import HandlerLoadError

MOST_SECONDS = 300
"""Seconds for the import; what is slow is MindSpore."""
MOST_BYTES = 1 << 20


class Declared(msgspec.Struct, frozen=True):
    """The ranks of a distributed servable, or what is wrong with it."""

    rank_size: int = 0
    stage_size: int = 0
    error: str = ""


def read_declared(directory: str, name: str) -> Declared:
    """Raises RuntimeError."""
    reading, writing = os.pipe()
    command = [*module_command(sys.executable, __name__), os.path.join(directory, name), name, str(writing)]
    with os.fdopen(reading, "rb") as pipe:
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[writing])
        finally:
            os.close(writing)
        try:
            process.wait(MOST_SECONDS)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"import {name}.servable_config failed, it took over {MOST_SECONDS} s") from None
        finally:
            process.kill()
            process.wait()
        os.set_blocking(reading, False)
        said = pipe.read(MOST_BYTES)
    if not said:
        raise RuntimeError(f"import {name}.servable_config failed, its process ended with {process.returncode}")
    declared = msgspec.json.decode(said, type=Declared)
    if declared.error:
        raise RuntimeError(declared.error)
    return declared


def _declared(folder: Path, name: str) -> Declared:
    try:
        servable = load_servable(folder, name)
    except HandlerLoadError as error:
        return Declared(error=str(error))
    if (model := servable.distributed) is not None:
        return Declared(model.declaration.rank_size, model.declaration.stage_size)
    if servable.models:
        return Declared(error=f"Servable '{name}' is not registered as distributed servable")
    return Declared(
        error=f"Distributed servable '{name}' has not been declared or has been declared more than once, "
        "declared number: 0"
    )


def main() -> None:
    folder, name, descriptor = sys.argv[1:]
    try:
        declared = _declared(Path(folder), name)
    except BaseException as error:
        declared = Declared(error=f"import {name}.servable_config failed, {error}")
    os.write(int(descriptor), msgspec.json.encode(declared)[:MOST_BYTES])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # whatever threads the import has started


if __name__ == "__main__":
    main()
