"""Probes over HTTP: TorchServe's /ping, which needs a key, and Kubernetes' two, which need none."""

from msx_frontend.models.health import Health
from msx_net.http.failures import torchserve_failure
from msx_net.http.family import Answer, Family, ListenerName, Reply, Route
from msx_net.http.replies import STATUS_SCHEMA, status_reply
from msx_net.http.request import Request
from msx_net.keys import Kind

PATHS = frozenset({"/livez", "/readyz"})
"""Probes that need no key, and that requests are not counted for."""


class Probes:
    def __init__(self, health: Health) -> None:
        self._health = health

    def inference(self) -> Family:
        return _family("inference", self._ping("inference"), self._live(), self._ready())

    def management(self) -> Family:
        return _family("management", self._ping("management"))

    # -- routes --

    def _ping(self, key: Kind) -> Route:
        summary = "Healthy unless a model has workers that will not come back"
        return _route("/ping", self.ping, "ping", summary, key, (500, "Unhealthy"))

    def _live(self) -> Route:
        return _route("/livez", self.live, "live", "The process answers; needs no token")

    def _ready(self) -> Route:
        summary = "Requests should be sent here: models serve, and the server is not ending; needs no token"
        return _route("/readyz", self.ready, "ready", summary, None, (503, "Not ready, and why"))

    # -- answers --

    async def ping(self, request: Request) -> Reply:
        status, text = self._health.ping()
        return status_reply(text, status)

    async def live(self, request: Request) -> Reply:
        """The process answers: nothing more."""
        return status_reply("Alive")

    async def ready(self, request: Request) -> Reply:
        return status_reply(self._health.detail(), 200 if self._health.ready() else 503)


def _route(
    path: str, answer: Answer, operation: str, summary: str, key: Kind | None = None, *also: tuple[int, str]
) -> Route:
    return Route(
        "GET",
        path,
        answer,
        key=key,
        summary=summary,
        operation=operation,
        any_method=True,
        response_schema=STATUS_SCHEMA,
        statuses=((200, "The reply"), *also),
    )


def _family(listener: ListenerName, *routes: Route) -> Family:
    return Family("probes", routes, torchserve_failure, listener=listener, closes_on_error=True)
