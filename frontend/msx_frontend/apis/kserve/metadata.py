"""Descriptions of the server and of its models, as plain objects for JSON and for gRPC."""

from typing import Any

from msx_core.kserve.types import Signature, TensorMeta
from msx_core.service_errors import ServiceUnavailable
from msx_frontend import __version__
from msx_frontend.models.registry import Registry
from msx_frontend.models.versions.model_version import ModelVersion

EXTENSIONS = [
    "binary_tensor_data",
    "parameters",
    "classification",
    "model_configuration",
    "model_repository",
    "statistics",
    "generate",
]
PLATFORM = "msx_python"
"""The platform of a handler that does not name its own."""

_DATA_TYPES = {"BYTES": "TYPE_STRING"}


def server_metadata() -> dict[str, Any]:
    return {"name": "MSX", "version": __version__, "extensions": EXTENSIONS}


def model_metadata(registry: Registry, name: str, number: str | None) -> dict[str, Any]:
    """Raises ModelNotFound, ModelVersionNotFound, ServiceUnavailable before the first worker has announced them."""
    version = registry.find(name, number)
    signature = _signature(version)
    numbers = [one.source.version for one in registry.versions_of(name)] if number is None else [number]
    return {
        "name": name,
        "versions": numbers,
        "platform": signature.platform or PLATFORM,
        "inputs": [_tensor(spec) for spec in signature.inputs],
        "outputs": [_tensor(spec) for spec in signature.outputs],
    }


def model_config(registry: Registry, name: str, number: str | None) -> dict[str, Any]:
    """Triton's configuration of a model. `max_batch_size` is 0, because `dims` have all axes: requests are batched,
    their rows are the model's.

    Raises as `model_metadata`.
    """
    version = registry.find(name, number)
    signature, settings = _signature(version), version.config
    config: dict[str, Any] = {
        "name": name,
        "platform": signature.platform or PLATFORM,
        "backend": "msx",
        "max_batch_size": 0,
        "input": [_port(spec) for spec in signature.inputs],
        "output": [_port(spec) for spec in signature.outputs],
        "instance_group": [{"name": f"{name}_0", "kind": "KIND_AUTO", "count": version.workers.least}],
        "default_model_filename": str(version.source.manifest.get("model", {}).get("serializedFile") or ""),
        "parameters": {},
    }
    if settings.batch_size > 1:
        config["dynamic_batching"] = {"max_queue_delay_microseconds": settings.max_batch_delay * 1000}
    return config


def _signature(version: ModelVersion) -> Signature:
    if version.schema.signature is None:
        name, number = version.labels
        raise ServiceUnavailable(f"Model {name} {number} has not been loaded yet; ask again when it is ready.")
    return version.schema.signature


def _tensor(spec: TensorMeta) -> dict[str, Any]:
    return {"name": spec.name, "datatype": spec.datatype, "shape": list(spec.shape)}


def _port(spec: TensorMeta) -> dict[str, Any]:
    data_type = _DATA_TYPES.get(spec.datatype, f"TYPE_{spec.datatype}")
    return {"name": spec.name, "data_type": data_type, "dims": list(spec.shape)}
