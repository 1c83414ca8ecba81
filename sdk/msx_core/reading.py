"""Reads requests before the handler is called, so that one that cannot be read fails alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from msx_core.bodies import JsonBodies, ReadsPart, says_json, strict
from msx_core.declared import ENCODERS, KINDS, ReplyKind, declared
from msx_core.errors import PredictionError
from msx_core.kserve.classification import ClassLabels
from msx_core.kserve.inference import Inference, announced
from msx_core.kserve.request import check_prediction
from msx_core.kserve.types import HEADER_LENGTH, INFER, Signature
from msx_core.methods import METHOD, PACKED_METHOD, answers_packed, method_of, names_method, unknown_method
from msx_core.methods import announced as announced_methods
from msx_core.packed import pack
from msx_core.statuses import UNKNOWN_METHOD
from msx_core.typed.functions import TypedFunction
from msx_core.typed.reading import TypedExample, TypedInference, TypedInput
from msx_core.typed.replies import TypedReply, packs

if TYPE_CHECKING:
    from msx_core.context import ModelInfo
    from msx_core.request import InferenceRequest
    from msx_core.resolved_handler import ResolvedHandler


_PREDICTIONS = ("", INFER, METHOD, PACKED_METHOD)
"""Operations that the handler's own `handle` answers."""


class RequestReader:
    """Reads the requests of one handler: JSON bodies as `jsonBodies` says, and tensors as `tensor_signature()`
    announces them.

    It leaves all other requests as they are.
    """

    def __init__(self, handler: ResolvedHandler, info: ModelInfo) -> None:
        self._handler = handler
        self._announce, self._model = handler.tensor_signature, (info.model_name, info.model_version)
        self._labels = ClassLabels(info.model_dir)
        self._declared = info.config.get("bodies") is not None
        self._strict = self._declared or json_bodies(info.config, handler.json_bodies) == "strict"
        self._read_part: ReadsPart = declared if self._declared else strict
        self._decodes = info.decode_input
        self._reads_all = self._declared or self._announce is not None
        self._looks = self._decodes and (self._strict or self._announce is not None)
        """It looks at predictions, but not at examples, and requests that the handler has seen: these do not have
        parts."""
        self._known: Signature | None = None
        self._methods: frozenset[str] | None = None

    def read(self, request: InferenceRequest) -> None:
        """Raises InvalidInput; PredictionError for a method that the handler does not have."""
        if not request.operation:
            if self._looks and request.parts and (self._reads_all or _says_json(request)):
                self._read_prediction(request)
        elif request.operation == INFER:
            self._read_inference(request)
        elif names_method(request.operation):
            self._read_call(request)

    def _read_prediction(self, request: InferenceRequest) -> None:
        decoded = request.decode(self._read_part if self._strict else None)
        if self._announce is not None and "body" in decoded:
            check_prediction(decoded["body"], self._signature)

    def _read_call(self, request: InferenceRequest) -> None:
        """Read the call of a method."""
        if name := method_of(request.operation):
            self._check_method(name)
        if answers_packed(request.operation):
            request.decode(self._read_part)
            request.encoder = pack if request.shared is None else request.shared.pack
        elif not name or (self._strict and self._decodes and (self._declared or _says_json(request))):
            # Without a name: of a last stage.
            request.decode(self._read_part)

    def _check_method(self, name: str) -> None:
        if self._methods is None:
            self._methods = frozenset(one.name for one in announced_methods(self._handler.offered_methods))
        if name not in self._methods:
            raise PredictionError(UNKNOWN_METHOD, unknown_method(self._model[0], name, self._methods))

    def _read_inference(self, request: InferenceRequest) -> None:
        """Leaves a request without inputs as it is: some ranks of a group get those."""
        body = request.parts.get("body")
        if body is not None:
            json_size = request.headers.get(HEADER_LENGTH)
            inference = Inference(body.data, json_size, self._model, self._signature, self._labels)
            request.input, request.encoder = inference, inference.encode

    @property
    def _signature(self) -> Signature:
        if self._known is None:
            self._known = announced(self._announce)
        return self._known


class TypedReader(RequestReader):
    """Also those of functions whose hints name the types of requests and replies."""

    def __init__(self, handler: ResolvedHandler, info: ModelInfo) -> None:
        super().__init__(handler, info)
        self._typed, self._leads = handler.typed, info.rank == 0

    def read(self, request: InferenceRequest) -> None:
        operation = request.operation
        name = method_of(operation)
        typed = self._typed.get(name) if name or operation in _PREDICTIONS else None
        if typed is None:
            return super().read(request)
        if operation == INFER:
            return self._read_typed_inference(request, typed)
        if not (request.parts or request.is_example) and not self._expects_parts(request):
            return None
        if typed.codec is None:
            super().read(request)
        elif request.example is not None:
            request.input = TypedExample(typed.codec, request.example)
        else:
            shared = request.shared
            resolve = shared.resolve if shared else None
            request.input = TypedInput(typed.codec, typed.name, request.parts, resolve, declared=self._declared)
        request.encoder = packs(request.shared) if answers_packed(operation) else TypedReply(_accepted(request))
        return None

    def _expects_parts(self, request: InferenceRequest) -> bool:
        """A description has no inputs, some ranks of a group get none, and the handler sees them once."""
        return self._leads and not request.is_spent and request.headers.get("describe") != "True"

    def _read_typed_inference(self, request: InferenceRequest, typed: TypedFunction) -> None:
        super().read(request)
        if isinstance(request.input, Inference) and typed.codec is not None:
            request.input = TypedInference(typed.codec, typed.name, request.input)


class ReadsRequests(Protocol):
    def read(self, request: InferenceRequest) -> None:
        """Raises InvalidInput, PredictionError."""


class DeclaredReplies:
    """Reads requests, and gives each the encoder that `replies:` names: the server tells it by the header `accept`."""

    def __init__(self, reader: RequestReader, kind: ReplyKind) -> None:
        self._reader, self._kind = reader, kind

    def read(self, request: InferenceRequest) -> None:
        self._reader.read(request)
        operation = request.operation
        if not request.is_example and (not operation or (names_method(operation) and not answers_packed(operation))):
            request.encoder = ENCODERS[KINDS.get(_accepted(request), self._kind)]


def reader_of(handler: ResolvedHandler, info: ModelInfo) -> ReadsRequests:
    """Handlers without types, and services without `replies:`, do not pay for them."""
    reader = TypedReader(handler, info) if handler.typed else RequestReader(handler, info)
    kind: ReplyKind | None = info.config.get("replies")
    return reader if kind is None else DeclaredReplies(reader, kind)


def _accepted(request: InferenceRequest) -> str:
    """The header `Accept`; a field of a form that has this name stands there, too."""
    accept = request.headers.get("accept")
    return accept if isinstance(accept, str) else ""


def _says_json(request: InferenceRequest) -> bool:
    for part in request.parts.values():  # noqa: SIM110  # a generator would cost more than all the rest
        if part.content_type and says_json(part.content_type):
            return True
    return False


def json_bodies(config: Mapping[str, Any], default: JsonBodies) -> JsonBodies:
    """The key `jsonBodies` of the yaml, else the handler's own choice."""
    wanted: JsonBodies | None = config.get("jsonBodies")
    return default if wanted is None else wanted
