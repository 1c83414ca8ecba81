"""Behaviour common to all routes of all families, without a line of the family: preflights without a key, HEAD."""

from __future__ import annotations

import re

import pytest

from msx_core.service_errors import HandlerFailed, InvalidKey
from msx_frontend.apis.torchserve.description import described
from msx_frontend.keys.key import Key
from msx_net.http.cors import Cors
from msx_net.http.family import Family, JobRoute, Route
from msx_net.http.router import Router
from tests.frontend.apis.families import of_listener
from tests.loops import run
from tests.net.http.client import Exchange, FakeAccessLog, ask
from tests.net.http.exchanges import exchange_of

LISTENERS = ("inference", "management", "metrics")
ORIGINS = "https://a.example, https://b.example"


def families(listener: str) -> list[Family]:
    own = of_listener(listener)
    return [described(own), *own]


def routes(listener: str) -> list[Route]:
    return [route for family in families(listener) for route in family.routes]


ALL = [(listener, route) for listener in LISTENERS for route in routes(listener)]
NAMES = [f"{route.method} {route.path}" for _, route in ALL]


def asked(route: Route) -> str:
    return re.sub(r"{[\w:]+}", "m", route.path)


class RefusesAll:
    def check_any(self, kinds: tuple[str, ...], authorization: str | None) -> Key:
        raise InvalidKey("no")


@pytest.mark.parametrize(("listener", "route"), ALL, ids=NAMES)
def test_a_preflight_needs_no_key(listener: str, route: Route) -> None:
    own = families(listener)
    edge = exchange_of(*own, log=FakeAccessLog(), tokens=RefusesAll(), cors=Cors(ORIGINS, "PUT"))

    async def preflight(origin: str) -> Exchange:
        return await ask(edge, "OPTIONS", asked(route), origin=origin, access_control_request_method="PUT")

    known, other = run(preflight("https://b.example")), run(preflight("https://c.example"))
    assert (known.status, known.body, other.status, other.body) == (204, b"", 204, b"")
    assert known.headers["access-control-allow-origin"] == "https://b.example"
    assert known.headers["access-control-allow-methods"] == "PUT"
    assert not any(name.startswith("access-control") for name in other.headers)


@pytest.mark.parametrize(("listener", "route"), ALL, ids=NAMES)
def test_head_is_get_without_a_body(listener: str, route: Route) -> None:
    own = families(listener)
    router = Router(own, own[0])
    found, match = router.find("GET", asked(route)).route, router.find("HEAD", asked(route))
    if found is None or isinstance(found.answer, JobRoute) or found.method != "GET":
        assert match.route is None
        assert match.allowed
        assert "HEAD" not in match.allowed
    else:
        assert match.route is found


OF_TORCHSERVE = {
    "TorchServe",
    "TorchServe management",
    "workflows",
    "workflow management",
    "descriptions",
    "metrics",
    "probes",
}


@pytest.mark.parametrize("family", [one for listener in LISTENERS for one in families(listener)], ids=lambda f: f.name)
def test_torchserves_name_of_all_errors_is_in_its_families_alone(family: Family) -> None:
    """Whoever reads "InternalServerException" for a 400 elsewhere looks for a bug of the server."""
    body = family.failure(HandlerFailed(400, "no pixels")).body
    assert (b"InternalServerException" in body) == (family.name in OF_TORCHSERVE)


def test_a_workflow_does_not_run_for_a_head() -> None:
    own = families("inference")
    match = Router(own, own[0]).find("HEAD", "/wfpredict/w")
    assert (match.route, match.allowed) == (None, ("POST", "GET", "PUT", "OPTIONS"))
