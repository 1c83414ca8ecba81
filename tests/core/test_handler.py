from __future__ import annotations

from typing import Any

from msx_sdk import Handler
from msx_sdk.request import Headers, Part
from tests.core.recording import LAST, Sink, requests, run


class Steps(Handler):
    def preprocess(self, data: Any) -> Any:
        return [bytes(row["body"]) for row in data]

    def inference(self, inputs: Any) -> Any:
        return [body.upper() for body in inputs]

    def postprocess(self, outputs: Any) -> Any:
        return [body + b"!" for body in outputs]

    def explain(self, inputs: Any) -> Any:
        return [f"because {body.decode()}" for body in inputs]

    def describe(self) -> Any:
        return "shouts"


def asked(handler: Any, header: str) -> Sink:
    batch = requests(b"a", b"b")
    for request in batch:
        request.headers = Headers([(header, "True")])
    return run(handler, batch)


def test_the_three_steps() -> None:
    assert run(Steps, requests(b"a", b"b")).events == {"r0": [b"A!", LAST], "r1": [b"B!", LAST]}


def test_by_default_a_handler_echoes_its_data() -> None:
    (request,) = requests(b"")
    request.parts = {"x": Part(b"[1, 2]", "application/json")}
    assert run(Handler, [request]).events["r0"] == [b'{\n  "x": [\n    1,\n    2\n  ]\n}', LAST]


def test_explanations() -> None:
    assert asked(Steps, "explain").events["r1"] == [b"because b", LAST]
    assert asked(Handler, "explain").failure("r0").status == 501


def test_descriptions() -> None:
    assert asked(Steps, "describe").events == {"r0": [b"shouts", LAST], "r1": [b"shouts", LAST]}
    assert asked(Handler, "describe").events["r0"] == [b"{}", LAST]
