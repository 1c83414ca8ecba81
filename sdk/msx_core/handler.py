"""The class that handler authors subclass."""

from collections.abc import Awaitable
from typing import Any

from msx_core.bodies import JsonBodies
from msx_core.context import Context
from msx_core.errors import PredictionError
from msx_core.steps import three_steps

__all__ = ["Data", "Handler"]

Data = list[dict[str, Any]]
"""One dict for each request of the batch: field name to value. A raw body is the field `body`."""


class Handler:
    """Override what differs: `initialize` to load the model, and any step of preprocess → inference → postprocess.

    A subclass with its own `handle` controls the whole call. `handle` may be a generator (each `yield` is one list
    of intermediate results) or `async def` (one request per call, many calls at once, may `yield`).
    The contract is TorchServe's custom service.
    """

    example: Any = None
    """One data dict, or object of the handler's type, or a list of them, run as warm-up before the model is READY."""

    parallel_types: tuple[str, ...] | None = None
    """The values of `parallelType` with which it can run on several ranks: `()` for none, None for any.

    Written as a literal, it is read when the model is packed, and refuses others then.
    """

    packed_with: tuple[str, ...] = ()
    """Files it cannot load without: options of msx-archiver (`--serialized-file`, `--model-file`) and names of files.

    Written as a literal, it is read when the model is packed: an archive without is refused then.
    """

    json_bodies: JsonBodies = "strict"
    """`strict`: a body that is declared as JSON arrives decoded, or is refused with 400 before `handle` is called.
    `lenient`: a body that cannot be parsed arrives as bytes, as in TorchServe. `jsonBodies` in model-config.yaml
    overrides it."""

    overlap: bool | None = None
    """True: the steps of this class keep nothing of a request on `self`, so that `preprocess` of the next batch and
    `postprocess` of the last one may run on other threads while `inference` runs. A subclass that overrides a step or
    `handle` says it anew. `overlap` in model-config.yaml overrides it."""

    context: Context

    def initialize(self, context: Context) -> Awaitable[None] | None:
        """Load the model. Called once, before the first request. What it raises fails the load. May be `async def`."""
        self.context = context
        return None

    def preprocess(self, data: Any) -> Any:
        """Gets `Data`, or objects of the type that the hint of its parameter names."""
        return data

    def inference(self, inputs: Any) -> Any:
        """Gets objects of a dataclass, msgspec struct or pydantic model, where its hint is `list[Request]` and there is
        no `preprocess`."""
        return inputs

    def postprocess(self, outputs: Any) -> Any:
        """Return a list with one entry a request: bytes, str, anything JSON can say, or an exception."""
        return outputs

    @three_steps()
    def handle(self, data: Any, context: Context) -> Any:
        """Answer a batch, which is `Data` or typed: a list as long as `data`."""
        self.context = context
        if context.get_request_header(0, "describe") == "True":
            return [self.describe()] * len(data)
        inputs = self.preprocess(data)
        if context.get_request_header(0, "explain") == "True":
            return self.explain(inputs)
        return self.postprocess(self.inference(inputs))

    def explain(self, inputs: Any) -> Any:
        """Answer `/explanations`: a list with one entry a request."""
        raise PredictionError(501, f"{type(self).__name__} has no explanations: it does not implement explain()")

    def describe(self) -> Any:
        """Answer to `GET /models/{model}?customized=true`."""
        return {}

    def close(self) -> Awaitable[None] | None:
        """Called once before the worker ends in good order. May be `async def`."""
        return None
