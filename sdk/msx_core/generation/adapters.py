"""Adapters that are loaded while the model runs."""

from msx_core.generation.wire import WireStruct


class AdapterFiles(WireStruct):
    """Where a loaded adapter is. `id`: of the call that loaded it; `stamp`: the handler's own name for the state of the
    files, from its `LoadAdapterReply`."""

    id: str
    folder: str
    stamp: str


class LoadAdapterRequest(WireStruct):
    """Whether the adapter in `folder`, as PEFT saves it, can be served; nothing changes by it."""

    name: str
    folder: str


class LoadAdapterReply(WireStruct):
    stamp: str
    rank: int
