"""The errors of management: of archives, registrations and workers. `status`, `type`, `grpc_code`: see
`msx_core.service_errors`.

ServiceError
├── ArchiveNotFound                            no such archive in the model store
├── DownloadFailed                             an archive elsewhere that could not be fetched
├── RequirementsFailed                         packages that an archive requires could not be installed
├── InvalidModel, Conflict, DefaultVersionInUse, TrafficInUse, ModelApiDisabled, NotSaved
├── AdapterNotFound                            no such adapter of a model, or in its folder
├── UploadsDisabled                            archives by upload are off
├── WorkersNotStarted
│   └── ResourcesMissing                       for want of devices
├── UnregisterTimedOut                         it is out, but its workers have not ended
└── BadRequest
    └── TooManyWorkers                         more than the server may start
"""

from __future__ import annotations

from msx_core.service_errors import BadRequest, ServiceError


class TooManyWorkers(BadRequest):
    """More processes than max_worker_processes allows."""


class InvalidModel(ServiceError):
    status, type, grpc_code = 400, "InvalidModelException", "INVALID_ARGUMENT"


class ArchiveNotFound(ServiceError):
    status, type, grpc_code = 404, "ModelNotFoundException", "NOT_FOUND"


class AdapterNotFound(ServiceError):
    status, type, grpc_code = 404, "ResourceNotFoundException", "NOT_FOUND"

    def __init__(self, model: str, name: str, *, packed: bool = False) -> None:
        why = f" It is one of the archive of model {model}, which keeps it." if packed else ""
        super().__init__(f"The lora adapter '{name}' cannot be found.{why}")

    @classmethod
    def at(cls, path: str, missing: str) -> AdapterNotFound:
        error = cls("", path)
        error.message = f"No adapter found for '{path}': there is no {missing}."
        return error


class DownloadFailed(ServiceError):
    """TorchServe's first words, and the reason."""

    status, type, grpc_code = 400, "DownloadArchiveException", "INVALID_ARGUMENT"

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"Failed to download archive from: {url} ({reason})")


class RequirementsFailed(ServiceError):
    """TorchServe's first words, and the last line of pip; `output` has more lines."""

    status, type, grpc_code = 400, "ModelException", "INVALID_ARGUMENT"

    def __init__(self, why: str, output: str = "", model: str = "") -> None:
        super().__init__(f"Custom pip package installation failed for model {model}: {why}")
        self.why, self.output = why, output

    def of(self, model: str) -> RequirementsFailed:
        return RequirementsFailed(self.why, self.output, model)


class Conflict(ServiceError):
    status, type, grpc_code = 409, "ConflictStatusException", "ALREADY_EXISTS"


class TrafficInUse(ServiceError):
    status, type, grpc_code = 409, "ConflictStatusException", "FAILED_PRECONDITION"

    def __init__(self, name: str, version: str, share: float) -> None:
        super().__init__(
            f"Model version {version} of {name} gets {share:.3g} of the model's traffic: divide it over other versions "
            f"first (PUT /models/{name}/traffic)"
        )


class DefaultVersionInUse(ServiceError):
    status, type, grpc_code = 403, "InvalidModelVersionException", "PERMISSION_DENIED"

    def __init__(self, name: str) -> None:
        super().__init__(f"Cannot remove default version for model {name}")


class ModelApiDisabled(ServiceError):
    status, type, grpc_code = 405, "MethodNotAllowedException", "PERMISSION_DENIED"

    def __init__(self) -> None:
        super().__init__(
            "Requested method is not allowed, please refer to API document. "
            "Registering and unregistering are off: start with --enable-model-api to turn them on."
        )


class UploadsDisabled(ServiceError):
    status, type, grpc_code = 405, "MethodNotAllowedException", "PERMISSION_DENIED"

    def __init__(self, key: str) -> None:
        super().__init__(f"Archives are not taken by upload: {key} is not true in config.properties.")


class WorkersNotStarted(ServiceError):
    """`out_of_memory` makes it 507, as TorchServe does."""

    own_name = "WorkersNotStartedException"

    def __init__(self, name: str, version: str, reason: str, *, out_of_memory: bool = False) -> None:
        super().__init__(f"Failed to start workers for model {name} version: {version}. {reason}")
        if out_of_memory:
            self.status = 507


class ResourcesMissing(WorkersNotStarted):
    """There are too few devices, or a resource is missing that the call must not wait for. TorchServe's type."""

    type = "WorkerInitializationException"


class UnregisterTimedOut(ServiceError):
    """TorchServe's first words."""

    status, type, grpc_code = 408, "RequestTimeoutException", "DEADLINE_EXCEEDED"

    def __init__(self, name: str, limit: int, left: float) -> None:
        super().__init__(
            f"Timed out while cleaning resources: {name}. It takes no more requests, but running ones did not end "
            f"within unregister_model_timeout ({limit} s); they may go on until responseTimeout ({left:g} s) is over."
        )


class NotSaved(ServiceError):
    """The state on disk could not be written; the message names the file and the reason."""

    own_name = "NotSavedException"
