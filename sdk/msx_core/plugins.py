"""The interface for plugins: the server finds endpoints and places for snapshots by their entry points, workers find
envelopes and packages of handlers.

The counterpart of TorchServe's `servingsdk` (docs/plugins.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from msx_core.request import Headers

ENDPOINTS, SNAPSHOTS = "msx.endpoints", "msx.snapshots"
"""Groups of entry points: a subclass of `Endpoint`; a callable that takes a ServerView's `config` and returns a
`SnapshotSerializer`."""

ENVELOPES, HANDLER_PACKAGES = "msx.envelopes", "msx.handler_packages"
"""Groups of entry points that a worker looks for: a class that is made with the handler's function and has a method
`handle(data, context)`; a callable without arguments that returns a `HandlerPackage`."""


class HandlerPackage(Protocol):
    """A Python package whose modules are handlers by their bare names, as TorchServe's default handlers are."""

    name: str
    """The package in which a handler is looked for when it is found nowhere else, such as `ts.torch_handler`."""

    def offer(self) -> None:
        """Make the package importable in this process. Called before the handler's module is imported."""

    def handler_for(self, handler: str, manifest: Mapping[str, Any]) -> str:
        """The handler string to use in place of the archive's `handler`; most often the same."""


@dataclass(frozen=True)
class EndpointRequest:
    """`path` is what follows the endpoint's own segment, without slashes at its ends; `query` has every value."""

    id: str
    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Headers
    body: bytes


@dataclass
class EndpointResponse:
    """`body`: bytes as they are, a str as UTF-8, anything else as JSON."""

    body: Any = b""
    status: int = 200
    content_type: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class WorkerView:
    id: str
    status: str
    pid: int | None
    """None without a process."""


@dataclass(frozen=True)
class ModelView:
    """The current state of one registered version."""

    name: str
    version: str
    url: str
    is_default: bool
    state: str
    min_workers: int
    max_workers: int
    batch_size: int
    workers: list[WorkerView]


class ServerView(Protocol):
    """A plugin's view of the server. It may be used from any thread."""

    @property
    def config(self) -> Mapping[str, str]:
        """The server's settings by the keys of config.properties, with defaults and without secrets."""

    def models(self) -> list[ModelView]: ...


class Endpoint:
    """A path of the server's own. Override what is to be served; the other methods are answered with 405.

    A plain `do_get(self, request)` runs on a thread of its own, an `async def` one on the server's loop, which it must
    not hold up. It returns an EndpointResponse, or just its body. A PredictionError (or InvalidInput) is answered with
    its status; anything else that it raises with 500, which names the plugin. It is made once, at the start.
    """

    path: ClassVar[str]
    """The first segment: `execution-parameters` serves /execution-parameters and all below it."""
    listener: ClassVar[Literal["inference", "management", "metrics"]] = "inference"
    open: ClassVar[bool] = False
    """True: the endpoint does not need a token."""
    description: ClassVar[str] = ""

    def __init__(self, server: ServerView) -> None:
        self.server = server

    def do_get(self, request: EndpointRequest) -> Any:
        raise NotImplementedError

    def do_post(self, request: EndpointRequest) -> Any:
        raise NotImplementedError

    def do_put(self, request: EndpointRequest) -> Any:
        raise NotImplementedError

    def do_patch(self, request: EndpointRequest) -> Any:
        raise NotImplementedError

    def do_delete(self, request: EndpointRequest) -> Any:
        raise NotImplementedError


class SavedSnapshot(NamedTuple):
    """`name`: `20261121093000123-startup.cfg`. `properties`: of config.properties, and `model_snapshot` (JSON)."""

    name: str
    properties: dict[str, str]


class SnapshotSerializer(Protocol):
    """TorchServe's interface of this name. Methods may block: they are called on a thread, one at a time.

    What `save` raises is logged and stops nothing; what the others raise at the start ends it: they are called
    for the snapshot that the key `model_snapshot` names, `get_last` for `last`.
    """

    def save(self, snapshot: SavedSnapshot) -> None:
        """Keeps a snapshot. An existing one of this name stays as it is."""

    def get(self, name: str) -> SavedSnapshot:
        """The snapshot of this name."""

    def get_last(self) -> SavedSnapshot | None:
        """The newest snapshot by the time stamp in its name; None before the first one."""
