"""`--handler servable`: a `servable_config.py` of MindSpore Serving. docs/servables.md says how to write one."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from msx_core.methods import MethodInfo
from msx_core.servables import ServableMethod, load_servable
from msx_mindspore_serving.servables.calls import ModelCalls
from msx_mindspore_serving.servables.distributed import DistributedModel
from msx_mindspore_serving.servables.execution import MethodRun
from msx_mindspore_serving.servables.failures import INVALID_INPUTS, SYSTEM_ERROR, failure
from msx_mindspore_serving.servables.function_pool import FunctionPool
from msx_mindspore_serving.servables.methods import with_model_methods
from msx_mindspore_serving.servables.networks import ModelFiles
from msx_mindspore_serving.servables.settings import decryption_of, options_of
from msx_mindspore_serving.servables.values import from_client
from msx_sdk import Context, Handler, InvalidInput
from msx_sdk.errors import HandlerLoadError, PredictionError
from msx_sdk.handler import Data

MOST_INSTANCES = 64
"""The largest batch of a model that takes any number, unless `batchSize` is larger."""


class ServableHandler(Handler):
    """The methods of a servable; each instance is a request."""

    parallel_types = ("tp", "pp", "pptp")
    packed_with = ("servable_config.py",)

    def initialize(self, context: Context) -> None:
        """Raises HandlerLoadError, in MindSpore Serving's words."""
        self.context = context
        self._pool: FunctionPool | None = None
        self._distributed: DistributedModel | None = None
        context.report_progress("importing servable_config.py")
        self._servable = servable = load_servable(context.model_dir, context.model_name)
        if servable.distributed is not None:
            self._distributed = DistributedModel.load(context, servable.distributed)
            self._models = {servable.distributed.key: self._distributed.served}
        elif context.world_size > 1:
            raise HandlerLoadError(f"Servable '{servable.name}' is not registered as distributed servable")
        else:
            self._models = ModelFiles(context, decryption_of(context)).load(servable)
        self._methods = with_model_methods(servable, self._models)
        calls = ModelCalls(self._models)
        for model in servable.models.values():
            model.caller = calls.from_function
        processes = options_of(context).function_processes
        if processes and servable.functions and not self._follows:
            context.report_progress("starting function processes")
            self._pool = FunctionPool(processes, context.model_dir, context.model_name, calls.from_process)

    def offered_methods(self) -> list[MethodInfo]:
        return [
            MethodInfo(name=one.name, inputs=one.inputs, outputs=one.outputs, summary=one.summary)
            for one in self._methods.values()
        ]

    def handle(self, data: Data, context: Context) -> list[Any]:
        """One dict of inputs an instance; the outputs of each, or its failure."""
        if context.get_request_header(0, "describe") == "True":
            return [self.describe()] * len(data)
        if context.get_request_header(0, "explain") == "True":
            return [self.explain(data)]
        if self._distributed is not None and self._follows:
            self._distributed.follow()
            return [b""] * len(data)
        with self._leading():  # the other ranks follow whatever comes of it
            return self._answered(data, context.method)

    def _answered(self, data: Data, name: str) -> list[Any]:
        method = self._method(name)
        if isinstance(method, PredictionError):
            return [method] * len(data)
        results: list[Any] = [self._inputs(method, one) for one in data]
        good = [at for at, result in enumerate(results) if not isinstance(result, PredictionError)]
        for at, result in zip(good, self._run(method, [results[at] for at in good]), strict=True):
            results[at] = result
        return results

    def describe(self) -> Any:
        return {"methods": [{"name": one.name, "inputs": one.inputs, "outputs": one.outputs} for one in self._own]}

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()

    def _run(self, method: ServableMethod, inputs: Sequence[Sequence[Any]]) -> list[dict[str, Any] | PredictionError]:
        most = max(self.context.info.batch_size, MOST_INSTANCES)
        try:
            if self._pool is not None:
                self._pool.revive()
            return MethodRun(method, self._models, self._pool, most).run(inputs)
        except HandlerLoadError as error:  # of a new function process
            return [failure(SYSTEM_ERROR, str(error))] * len(inputs)

    def _leading(self) -> AbstractContextManager[None]:
        return nullcontext() if self._distributed is None else self._distributed.leading()

    @property
    def _follows(self) -> bool:
        return self.context.rank > 0

    @property
    def _own(self) -> Sequence[ServableMethod]:
        return tuple(self._servable.methods.values())

    def _method(self, name: str) -> ServableMethod | PredictionError:
        """A request that names none asks for the only one."""
        if not name and len(self._own) == 1:
            return self._own[0]
        if name in self._methods:
            return self._methods[name]
        known = ", ".join(one.name for one in self._own)
        text = (
            f"Request servable({self._servable.name}) method({name}) , method is not available"
            if name
            else f"the servable has the methods {known}: name one in the URL"
        )
        return failure(INVALID_INPUTS, text)

    def _inputs(self, method: ServableMethod, data: dict[str, Any]) -> list[Any] | PredictionError:
        """The values of an instance in the method's order. A body that is a JSON object has them as its members."""
        try:
            body = data.get("body")
        except InvalidInput as error:  # no form, though it came as one
            return failure(INVALID_INPUTS, error.message)
        given = body if isinstance(body, dict) and len(data) == 1 else data
        values = []
        for name in method.inputs:
            if name not in given:
                return failure(
                    INVALID_INPUTS,
                    f"Cannot find input {name} in instance input , servable {self._servable.name}, "
                    f"method {method.name}",
                )
            try:
                values.append(from_client(given[name], name))
            except InvalidInput as error:
                return failure(INVALID_INPUTS, error.message)
        return values
