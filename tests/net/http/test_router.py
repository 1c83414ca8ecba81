from __future__ import annotations

from urllib.parse import unquote

import pytest

from msx_net.http.family import Failure, Family, JobRoute, Names, Reply, Route
from msx_net.http.head import Head
from msx_net.http.request import Request
from msx_net.http.router import Match, Router
from msx_net.keys import Kind
from msx_net.model_names import ModelNames


async def answer(request: Request) -> Reply:
    return Reply(b"")


async def other(request: Request) -> Reply:
    return Reply(b"")


def no_job(head: Head, names: Names) -> None:
    raise AssertionError


JOB = JobRoute(no_job)  # type: ignore[arg-type]


def family(name: str, *routes: Route, owns: tuple[str, ...] = ()) -> Family:
    return Family(name, routes, lambda error: Failure(500, b""), owns=owns)


FIRST = family(
    "first",
    Route("POST", "/predict/{model}", JOB, any_method=True),
    Route("OPTIONS", "/predict/{model}", answer),
    Route("POST", "/predict/{model}/{version}", JOB),
    Route("POST", "/predict/{model}/{version}/{rest:path}", JOB),
    Route("POST", "/predict/{model}:{call}", JOB),
    Route("POST", "/predict/{model}/{version}:{call}", JOB),
    Route("POST", "/{model}/predict", JOB),
    Route("GET", "/ping", answer, key=None, any_method=True),
    Route("GET", "/models/{model}:show", answer),
    Route("GET", "/", answer),
)
SECOND = family(
    "second",
    Route("GET", "/models/{model}", answer),
    Route("PUT", "/models/{model}", answer, key="management"),
    Route("GET", "/models/{model}/ready", answer),
    Route("GET", "/v9/{name:path}", answer),
    owns=("v9", "models"),
)
ROUTER = Router([FIRST, SECOND], default=FIRST)


@pytest.mark.parametrize(
    ("method", "path", "template", "names"),
    [
        ("GET", "/", "/", {}),
        ("GET", "/ping", "/ping", {}),
        ("DELETE", "/ping", "/ping", {}),
        ("POST", "/predict/m", "/predict/{model}", {"model": "m"}),
        ("PUT", "/predict/m", "/predict/{model}", {"model": "m"}),
        ("POST", "/predict/m/2", "/predict/{model}/{version}", {"model": "m", "version": "2"}),
        (
            "POST",
            "/predict/m/2/a//b",
            "/predict/{model}/{version}/{rest:path}",
            {"model": "m", "version": "2", "rest": "a//b"},
        ),
        ("POST", "/predict/m:call", "/predict/{model}:{call}", {"model": "m", "call": "call"}),
        ("POST", "/predict/m:a:b", "/predict/{model}:{call}", {"model": "m", "call": "a:b"}),
        ("POST", "/predict/m:", "/predict/{model}", {"model": "m:"}),
        ("POST", "/predict/:call", "/predict/{model}", {"model": ":call"}),
        ("POST", "/predict/m/2:c", "/predict/{model}/{version}:{call}", {"model": "m", "version": "2", "call": "c"}),
        ("POST", "/m/predict", "/{model}/predict", {"model": "m"}),
        ("POST", "/ping/predict", "/{model}/predict", {"model": "ping"}),
        ("POST", "/predict/predict", "/predict/{model}", {"model": "predict"}),
        ("GET", "/models/m", "/models/{model}", {"model": "m"}),
        ("GET", "/models/m:show", "/models/{model}:show", {"model": "m"}),
        ("PUT", "/models/m:show", "/models/{model}", {"model": "m:show"}),
        ("GET", "/models/:show", "/models/{model}", {"model": ":show"}),
        ("HEAD", "/models/m/ready", "/models/{model}/ready", {"model": "m"}),
        ("GET", "/v9/a/b", "/v9/{name:path}", {"name": "a/b"}),
    ],
)
def test_found(method: str, path: str, template: str, names: dict[str, str]) -> None:
    match = ROUTER.find(method, path)
    assert match.route is not None
    assert (match.route.path, match.names) == (template, names)


@pytest.mark.parametrize(
    ("path", "refused_by"),
    [
        ("/nothing", "first"),
        ("/predict", "first"),
        ("/predict//2", "first"),
        ("/v9", "second"),
        ("/v9x/predict/x", "first"),
        ("/models/predict", "second"),
        ("/models/m/x", "second"),
    ],
)
def test_not_found(path: str, refused_by: str) -> None:
    match = ROUTER.find("POST", path)
    assert (match.route, match.family.name) == (None, refused_by)
    assert match.allowed == (("GET", "HEAD", "PUT", "OPTIONS") if path == "/models/predict" else ())


@pytest.mark.parametrize(
    ("raw_path", "template", "names"),
    [
        ("/predict/org%2Fname", "/predict/{model}", {"model": "org/name"}),
        ("/predict/org%2fname/2", "/predict/{model}/{version}", {"model": "org/name", "version": "2"}),
        ("/predict/org%2Fname:go", "/predict/{model}:{call}", {"model": "org/name", "call": "go"}),
        ("/org%2Fname/predict/", "/{model}/predict", {"model": "org/name"}),
        ("/predict%2Forg%2Fname", "/predict/{model}/{version}", {"model": "org", "version": "name"}),
        ("/predict/org%2Fnam", "/predict/{model}/{version}", {"model": "org", "version": "nam"}),
        (
            "/predict/a%2Fb%2Fc%2F",
            "/predict/{model}/{version}/{rest:path}",
            {"model": "a", "version": "b", "rest": "c"},
        ),
    ],
)
def test_encoded_slashes_divide_a_path_but_for_an_alias(raw_path: str, template: str, names: dict[str, str]) -> None:
    known = ModelNames()
    known.aliases = {"org/name": "m"}
    router = Router([FIRST, SECOND], default=FIRST, names=known)
    match = router.find("POST", unquote(raw_path).rstrip("/"), raw_path.encode())
    assert match.route is not None
    assert (match.route.path, match.names) == (template, names)


def test_a_method_that_is_not_allowed() -> None:
    match = ROUTER.find("DELETE", "/models/m")
    assert (match.route, match.allowed) == (None, ("GET", "HEAD", "PUT", "OPTIONS"))
    match = ROUTER.find("HEAD", "/predict/m")
    assert (match.route, match.allowed) == (None, ("POST", "GET", "PUT", "OPTIONS"))


def test_kinds_of_keys() -> None:
    def kinds(router: Router, method: str, path: str) -> tuple[Kind, ...]:
        return router.find(method, path).kinds

    assert kinds(ROUTER, "GET", "/ping") == ()
    assert kinds(ROUTER, "GET", "/models/m") == ("inference",)
    assert kinds(ROUTER, "PUT", "/models/m") == ("management",)
    ours = family("ours", Route("GET", "/a", answer), Route("GET", "/b", answer))
    theirs = family("theirs", Route("GET", "/a", answer, key="management"), Route("GET", "/b", other, key="management"))
    merged = Router([ours, theirs], default=ours)
    assert kinds(merged, "GET", "/a") == ("inference", "management")
    assert kinds(merged, "GET", "/b") == ("inference",)


def test_a_route_that_comes_and_goes() -> None:
    there = False
    some = family("some", Route("POST", "/", answer, when=lambda: there))
    router = Router([some], default=some)
    assert (router.find("POST", "/").route, router.find("POST", "/").allowed) == (None, ())
    there = True
    assert router.find("POST", "/").route is not None
    assert router.find("GET", "/").allowed == ("POST", "OPTIONS")


def test_a_route_that_has_some_names_only() -> None:
    """Paths with other names are those of a less literal route, and are looked for anew each time."""
    one = Route("POST", "/predict/{model}/known", answer, whose=lambda names: names["model"] == "own")
    every = Route("POST", "/predict/{model}/{rest:path}", other)
    router = Router([family("some", one, every)], default=FIRST)
    assert (found := router.find("POST", "/predict/own/known").route) is one
    assert router.find("POST", "/predict/another/known").route is every
    assert not found.is_lasting
    assert every.is_lasting
    assert router.find("GET", "/predict/own/known").allowed == ("POST", "OPTIONS")


def test_taken_names() -> None:
    assert ROUTER.first_segments() == {"predict", "ping", "models", "v9"}


def test_a_template_that_is_not_a_path() -> None:
    with pytest.raises(ValueError, match="'x' of some does not begin with a slash"):
        Router([family("some", Route("GET", "x", answer))], default=FIRST)


def test_paths_that_a_family_lends() -> None:
    """A model may have those below its segment that no route has, and those that no loaded model answers."""
    routes = (
        Route("POST", "/v1/embeddings", JOB, offered_by=("embed",)),
        Route("GET", "/v1/models", answer),
        Route("GET", "/v1/models/{model:path}", answer),
    )
    lends = family("lends", *routes, owns=("v1", "own"))._replace(lends=("v1",))
    own = Match(lends, Route("POST", "/v1/x", answer))
    models = {"/v1/x": own, "/v1/embeddings": own, "/own/x": own}
    router = Router([FIRST, lends], FIRST, further=lambda method, path: models.get(path))
    taken = {path: router.taken_by(path) for path in ("/v1/x", "/v1/embeddings", "/v1/models", "/v1/models/a")}
    assert taken == {"/v1/x": None, "/v1/embeddings": ("embed",), "/v1/models": (), "/v1/models/a": ()}
    assert (router.taken_by("/own/x"), router.taken_by("/ping"), router.taken_by("/free/x")) == ((), (), None)
    assert router.find("POST", "/v1/x") is router.find("POST", "/v1/embeddings") is own
    assert router.find("POST", "/own/x").route is None
    del models["/v1/embeddings"]
    assert router.find("POST", "/v1/embeddings").route is routes[0]
