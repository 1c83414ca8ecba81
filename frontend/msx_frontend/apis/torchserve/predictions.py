"""Predictions and explanations: TorchServe's paths, its older ones, SageMaker's and KServe v1's."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, Protocol

from msx_core.bodies import says_json
from msx_core.service_errors import BadRequest, ServiceError
from msx_frontend.apis.torchserve.description import model_description
from msx_frontend.apis.torchserve.packed_bodies import around
from msx_frontend.apis.torchserve.split_predictions import SplitPrediction, SplitsModels
from msx_frontend.body_fields import fields_of_query, fields_parser, merge_fields
from msx_frontend.declared_jobs import DeclaredJobs
from msx_frontend.job import EXPLAIN, PREDICT, Field, Job, method_kind
from msx_frontend.job_headers import KeptHeaders
from msx_frontend.metrics.timed_sink import TimedSink, asks_for_timing
from msx_frontend.models.schemas.body import body_schemas
from msx_frontend.models.versions.model_version import ModelVersion
from msx_net.http.failures import torchserve_failure
from msx_net.http.family import Family, JobRoute, JobTemplate, Names, Reply, ReplySink, Route
from msx_net.http.head import Head
from msx_net.http.request import Request
from msx_net.http.wire import json_bytes
from msx_net.keys import ClientKey

Submit = Callable[[Job], None]


class Find(Protocol):
    def __call__(self, name: str, version: str | None = None, /) -> ModelVersion:
        """Raises ModelNotFound, ModelVersionNotFound."""


MODEL, VERSION, METHOD, URL_PATH = "model_name", "model_version", "method", "url_path"
"""Names in paths, as TorchServe's description has them."""
STREAM_HEADERS = [(b"ts_stream_next", b"true")]


class Meaning(NamedTuple):
    """Meaning of a path for the job, besides the names in it."""

    kind: str = PREDICT
    headers: tuple[tuple[str, str], ...] = ()
    """Headers for the handler besides the client's."""
    tells_path: bool = False
    """The handler sees what stands behind the version as the header `url_path`."""
    takes_query: bool = False
    """Query parameters are inputs."""
    may_split: bool = False
    """Each instance in the body may be a job of its own."""


PREDICTS = Meaning(PREDICT, (("explain", "False"),))
EXPLAINS = Meaning(EXPLAIN, (("explain", "True"),))
KSERVE = PREDICTS._replace(may_split=True)
INVOKES = Meaning(takes_query=True)


class Predictions:
    """`submit` hands a job to its model; `find` raises ModelNotFound. `models` say whether the instances of KServe v1's
    requests are jobs; without them none is."""

    def __init__(
        self, submit: Submit, find: Find, models: SplitsModels | None = None, *, sent_packed: bool = True
    ) -> None:
        """`sent_packed`: bodies with a Content-Encoding come as they were sent."""
        self.submit, self._find, self.models, self._sent_packed = submit, find, models, sent_packed
        self.only_model: str | None = None
        """The model of `/invocations` without a name."""

    def declared(self, model: str, version: str | None, kind: str) -> DeclaredJobs | None:
        """Types that the model declares for such jobs. None for a model that is not found: the job's client is told."""
        try:
            return self._find(model, version).queue.declared(kind)
        except ServiceError:
            return None

    def family(self) -> Family:
        return Family(
            "TorchServe",
            tuple(self._routes()),
            torchserve_failure,
            owns=("models",),
            closes_on_error=True,
            takes_as_sent=True,
            stream_headers=STREAM_HEADERS,
        )

    def _routes(self) -> Iterator[Route]:
        for word, meaning in (("predictions", PREDICTS), ("explanations", EXPLAINS)):
            told = meaning._replace(tells_path=True)
            verb = "Predict" if meaning is PREDICTS else "Explain"
            path = f"/{word}/{{{MODEL}}}"
            yield from self._of_model(path, told, f"{verb} by the default version", word)
            yield from self._of_model(f"{path}/{{{VERSION}}}", told, f"{verb} by one version", f"version_{word}")
            rest = f"{verb} by one version; the handler sees the rest of the path"
            yield from self._of_model(f"{path}/{{{VERSION}}}/{{{URL_PATH}:path}}", told, rest)
            yield from self._of_model(f"{path}//{{{URL_PATH}:path}}", told)
        path = f"/predictions/{{{MODEL}}}"
        yield from self._of_model(f"{path}:{{{METHOD}}}", PREDICTS, "Call a method of the default version")
        yield from self._of_model(f"{path}/{{{VERSION}}}:{{{METHOD}}}", PREDICTS, "Call a method of one version")
        yield self._job("/invocations", INVOKES, "SageMaker's route", "invocations", ((MODEL, "string"),))
        yield from self._of_model(
            f"/models/{{{MODEL}}}/invoke", INVOKES, "SageMaker's route with several models", "invoke"
        )
        yield from self._of_model(f"/{{{MODEL}}}/predict", INVOKES, "An older route", "predict")
        yield from self._of_model(f"/{{{MODEL}}}/{{{VERSION}}}/predict", INVOKES, "An older route", "version_predict")
        yield from self._of_model(f"/v1/models/{{{MODEL}}}:predict", KSERVE, "KServe v1", "kserve_predictions")
        yield from self._of_model(f"/v1/models/{{{MODEL}}}:explain", EXPLAINS, "KServe v1", "kserve_explanations")

    def _of_model(self, path: str, meaning: Meaning, summary: str = "", operation: str = "") -> Iterator[Route]:
        yield self._job(path, meaning, summary, operation)
        yield Route("OPTIONS", path, self._describe, summary=summary and "OpenAPI 3.0 of the model", model=MODEL)

    def _job(
        self, path: str, meaning: Meaning, summary: str, operation: str, queries: tuple[tuple[str, str], ...] = ()
    ) -> Route:
        made = SplitTemplate if meaning.may_split and self.models is not None else PredictionTemplate

        def template(head: Head, names: Names) -> JobTemplate:
            return around(made(self, meaning, head, names), head.content_encoding if self._sent_packed else "")

        route = JobRoute(template)
        return Route(
            "POST",
            path,
            route,
            summary=summary,
            operation=operation,
            queries=queries,
            any_method=True,
            model=MODEL,
        )

    async def _describe(self, request: Request) -> Reply:
        model = request.names[MODEL]
        schema = self._find(model).schema
        return Reply(json_bytes(model_description(model, [*body_schemas(schema.signature, schema.methods)])))


class PredictionTemplate:
    """Parts of a prediction's job that its request's head decides."""

    __slots__ = (
        "_fields",
        "_headers",
        "_kind",
        "_model",
        "_predictions",
        "_query",
        "_submit",
        "_timed",
        "_version",
        "key",
    )

    def __init__(self, predictions: Predictions, meaning: Meaning, head: Head, names: Names) -> None:
        self._predictions, self._submit = predictions, predictions.submit
        self._model, self._version = names.get(MODEL), names.get(VERSION)
        told = [(URL_PATH, names.get(URL_PATH, ""))] if meaning.tells_path else []
        self._headers, self._kind = KeptHeaders([*head.headers(), *meaning.headers, *told]), meaning.kind
        if method := names.get(METHOD):
            self._kind = method_kind(method)
        self._timed = asks_for_timing(head.raw_headers)
        self.key: ClientKey | None = None
        self._query = head.query if meaning.takes_query else b""
        self._fields = fields_parser(head.content_type, self._takes_whole)
        """Makes fields of a body. Raises BadRequest."""
        if self._query:
            self._fields = partial(_with_query, self._fields, self._query)

    def submit(self, id: str, body: bytes, sink: ReplySink) -> None:
        fields = self._fields(body)
        model = self._model or self._named(fields)
        own = TimedSink(sink) if self._timed else sink
        job = sink.job = Job(id, model, self._version, fields, self._headers, own, kind=self._kind)
        if isinstance(own, TimedSink):
            own.job = job
        self._submit(job)

    def takes_packed(self, encoding: str) -> bool:
        """Bodies are decompressed for the model. Raises CompressionSwitchedOff."""
        declared = self._declared()
        return declared is not None and declared.takes_packed(self._asked() or "", encoding)

    def _takes_whole(self) -> bool:
        """The model says what its bodies are: they are no forms, whatever their clients state."""
        declared = self._declared()
        return declared is not None and declared.takes_whole

    def _declared(self) -> DeclaredJobs | None:
        model = self._asked()
        return None if model is None else self._predictions.declared(model, self._version, self._kind)

    def _asked(self) -> str | None:
        """The model, as far as the head says it."""
        return self._model or _text(fields_of_query(self._query), MODEL) or self._predictions.only_model

    def _named(self, fields: list[Field]) -> str:
        """The model that a parameter names, or the only one. Raises BadRequest, ModelNotAllowed."""
        model = _text(fields, MODEL) or self._predictions.only_model
        if model is None:
            raise BadRequest("Parameter model_name is required.")
        if self.key is not None:
            self.key.check_model(model)
        return model


class SplitTemplate(PredictionTemplate):
    """Template of a KServe v1 prediction, whose instances may become jobs of their own."""

    __slots__ = ("_content_type", "_models")

    def __init__(self, predictions: Predictions, meaning: Meaning, head: Head, names: Names) -> None:
        super().__init__(predictions, meaning, head, names)
        self._models = predictions.models
        self._content_type = head.content_type.decode("latin-1")

    def submit(self, id: str, body: bytes, sink: ReplySink) -> None:
        whole = partial(super().submit, id, body, sink)
        if self._models is None or self._model is None or not self._is_json or not self._models.splits(self._model):
            return whole()
        split = SplitPrediction(self._models, id, self._model, self._headers, sink, whole)
        return split.begin(body, self._content_type)

    @property
    def _is_json(self) -> bool:
        return not self._content_type or says_json(self._content_type)


def _with_query(parse: Callable[[bytes], list[Field]], query: bytes, body: bytes) -> list[Field]:
    return merge_fields(parse(body), fields_of_query(query))


def _text(fields: list[Field], name: str) -> str | None:
    return next((field.data.decode("utf-8", "replace") for field in fields if field.name == name), None)
