"""Models that requests ask for, and the request whose instances are its jobs."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msx_core.methods import PACKED_METHOD, MethodInfo
from msx_core.packed import PACKED, pack
from msx_core.service_errors import ModelNotFound
from msx_frontend.plugins.families import (
    Field,
    InstanceRequest,
    InstancesSink,
    KeptHeaders,
    ModelVersion,
    Registry,
    too_large,
)
from msx_mindspore_serving.family.errors import ServingError, Spec, unavailable
from msx_mindspore_serving.family.values import InvalidTensor

_NO_HEADERS = KeptHeaders()

Instances = Sequence[Mapping[str, Any]]
Read = Callable[[Any], Any]
"""Makes the value of one input from what a client sent. Raises InvalidTensor."""


class Servables:
    """Servables of one server. All but `submit` may run on any thread."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def request(
        self,
        id: str,
        spec: Spec,
        instances: Instances,
        read: Read,
        sink: InstancesSink,
        *,
        deadline: float | None = None,
    ) -> InstanceRequest:
        """Not submitted yet. Raises ServingError for what does not fit the method, PayloadTooLarge, Overloaded."""
        enqueued = self._registry.enqueued
        enqueued.check()
        version = self._find(spec)
        method = _method(version, spec)
        if not instances:
            raise ServingError(
                f"Instances count of request cannot be 0, servable: {spec.servable}, method: {spec.method}"
            )
        if len(instances) > (most := version.config.max_enqueued_instances):
            raise too_large(spec.servable, len(instances), most)  # before a job's fields are made of each
        return InstanceRequest(
            id,
            spec.servable,
            version.source.version,
            _fields(spec, method, instances, read),
            _NO_HEADERS,
            sink,
            kind=PACKED_METHOD + spec.method,
            deadline=deadline,
            enqueued=enqueued,
        )

    def submit(self, request: InstanceRequest) -> None:
        """Raises ServiceError."""
        self._registry.submit_instances(request)

    def outputs(self, spec: Spec) -> tuple[str, ...]:
        """Names that a reply of the method has; none where any will do. Raises ServingError."""
        return _method(self._find(spec), spec).outputs

    def has_non_finite(self, spec: Spec, place: str) -> None:
        """A reply has NaN or an infinity there, which REST writes as null."""
        with suppress(ServingError):  # unregistered meanwhile
            self._find(spec).metrics.non_finite.found(place)

    def _find(self, spec: Spec) -> ModelVersion:
        """Raises ServingError."""
        try:
            versions = self._registry.versions_of(spec.servable)
        except ModelNotFound:
            raise _not_available(spec) from None
        if not spec.version:
            return versions[0] if len(versions) == 1 else self._newest(spec.servable, versions)
        for version in versions:
            if _number(version) == spec.version:
                return version
        raise _not_available(spec)

    def _newest(self, name: str, versions: Sequence[ModelVersion]) -> ModelVersion:
        """The one with the largest number, of those that have workers if any has; the default one without numbers."""
        numbered = [one for one in versions if _number(one) >= 0]
        if not numbered:
            return self._registry.find(name)
        return max([one for one in numbered if _answers(one)] or numbered, key=_number)


def _answers(version: ModelVersion) -> bool:
    return version.serving and version.workers.answer


def _number(version: ModelVersion) -> int:
    """The version as a number: "3" and "3.0" are 3. -1 for all other texts."""
    text = version.source.version.removesuffix(".0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1


def _method(version: ModelVersion, spec: Spec) -> MethodInfo:
    """Raises ServingError."""
    if version.schema.methods is None:
        raise _not_available(spec)
    for method in version.schema.methods:
        if method.name == spec.method:
            return method
    raise _not_available(spec, "method is not available")


def _not_available(spec: Spec, what: str = "servable is not available") -> ServingError:
    if not spec.version:
        return ServingError(unavailable(spec).replace("servable is not available", what))
    return ServingError(f"Request servable({spec.servable}) method({spec.method})  version({spec.version}) , {what}")


def _fields(spec: Spec, method: MethodInfo, instances: Instances, read: Read) -> list[list[Field]]:
    """Raises ServingError."""
    names = method.inputs
    for instance in instances:
        for name in names:
            if name not in instance:
                raise ServingError(
                    f"Cannot find input {name} in instance input , servable {spec.servable}, method {spec.method}"
                )
    return [[_field(name, one[name], read) for name in names or one] for one in instances]


def _field(name: str, value: Any, read: Read) -> Field:
    """Raises ServingError."""
    try:
        return Field(name, PACKED, pack(read(value)))
    except InvalidTensor as error:
        raise ServingError(f"Instances input {name} check failed, detail: {error}") from None
