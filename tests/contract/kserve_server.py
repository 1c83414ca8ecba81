"""The server that Triton's clients meet: a small MindIR, a mirror of tensors, and a handler that answers many times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from tests.e2e.server import RunningServer, new_store, pack_service, run_server

NETS = Path(__file__).parents[1] / "core" / "data"


@contextmanager
def kserve_server(folder: Path, properties: str = "") -> Iterator[RunningServer]:
    store = new_store(folder)
    pack_mindir("two", store)
    pack_service("tensors", store, model="mirror", function="mirror", config="batchSize: 4\njobQueueSize: 1000")
    pack_service("tensors", store, model="repeat", function="repeat")
    for name in ("spare", "unregistered"):  # one for each client, which registers it
        pack_service("tensors", store, model=name, function="mirror")
    models = [name for model in ("two", "mirror", "repeat") for name in ("--models", f"{model}.mar")]
    with run_server(folder, *models, tokens=True, properties=properties) as running:
        yield running


def pack_mindir(name: str, store: Path) -> None:
    file = str(NETS / f"{name}.mindir")
    pack(PackOptions(model_name=name, version="1.0", handler="mindir", serialized_file=file, export_path=store))
