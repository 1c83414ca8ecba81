"""The describe API's object of one model version: TorchServe's members in their order, then those of MSX."""

from typing import Any

import msgspec

from msx_core.config import StageConfig
from msx_core.rfc3339 import rfc3339
from msx_frontend.models.device_usage import gpu_usage, worker_devices
from msx_frontend.models.versions.model_version import ModelVersion
from msx_frontend.workers.replica import Replica


def describe(version: ModelVersion) -> dict[str, Any]:
    config, source = version.config, version.source
    sequences = config.stateful
    layout = config.layout
    described: dict[str, Any] = {
        "modelName": source.name,
        "modelVersion": source.version,
        **({"modelUrl": source.archive.shown} if source.url else {}),
        "runtime": source.manifest.get("runtime", "python"),
        "minWorkers": version.workers.least,
        "maxWorkers": version.workers.most,
        "batchSize": config.batch_size,
        "maxBatchDelay": config.max_batch_delay,
        "responseTimeout": config.response_timeout,
        "startupTimeout": config.startup_timeout,
        **version.workers.describe(),
        "maxRetryTimeoutInSec": config.max_retry_timeout_in_sec,
        "clientTimeoutInMills": config.client_timeout_in_mills,
        "parallelType": config.parallel_type,
        "parallelLevel": layout.ranks if layout.ranks > 1 else config.parallel_level,
        "deviceType": version.workers.device_type,
        **({"deviceIds": list(config.device_ids)} if config.device_ids else {}),
        **_unhealthy(version),
        "continuousBatching": config.continuous_batching,
        "useJobTicket": config.use_job_ticket,
        "useVenv": config.use_venv,
        **_interpreter(version),
        "stateful": sequences,
        "sequenceMaxIdleMSec": config.sequence_max_idle_msec,
        "sequenceTimeoutMSec": config.sequence_timeout_msec,
        "maxNumSequence": config.max_num_sequence if sequences else 0,
        "maxSequenceJobQueueSize": config.max_sequence_job_queue_size if sequences else 0,
        "loadedAtStartup": source.at_startup,
        "workers": [_worker(version, replica) for replica in version.workers.all],
        "jobQueueStatus": version.queue.describe(),
        "state": version.status.state.value,
    }
    if (pipeline := version.config.pipeline) is not None and version.stages:
        described["stages"] = [_stage(stage, version.stages[stage.name]) for stage in pipeline.stages.values()]
        described["routes"] = {name: [route.first, route.last] for name, route in pipeline.routes.items() if name}
    if version.schema.capabilities and (offered := msgspec.to_builtins(version.schema.capabilities)):
        described["capabilities"] = offered
    if named := [method for method in version.schema.methods or () if method.name]:
        described["methods"] = msgspec.to_builtins(named)
    described |= _overlap(version)
    if version.sleep.level:
        described["sleepLevel"] = version.sleep.level
    if version.aliases:
        described["aliases"] = list(version.aliases)
    if version.figures.traffic_share is not None:
        described["trafficShare"] = round(version.figures.traffic_share, 6)
    if version.status.reason:
        described["reason"] = version.status.reason
    if version.failed_scaling:
        described["failedScaling"] = version.failed_scaling
    if version.status.reason and version.status.last_end and version.status.last_end.traceback:
        described["traceback"] = version.status.last_end.traceback
    return described


def _stage(stage: StageConfig, version: ModelVersion) -> dict[str, Any]:
    config = version.config
    return {
        "name": stage.name,
        "from": list(stage.before),
        "handler": stage.handler,
        "minWorkers": version.workers.least,
        "maxWorkers": version.workers.most,
        **version.workers.describe(),
        "batchSize": config.batch_size,
        "maxBatchDelay": config.max_batch_delay,
        "responseTimeout": config.response_timeout,
        "edgeCapacity": stage.edge_capacity,
        "edgeMemory": config.edge_memory,
        "sharedMemory": config.shared_memory,
        "sharedSegments": config.shared_segments,
        "deviceType": version.workers.device_type,
        **({"deviceIds": list(config.device_ids)} if config.device_ids else {}),
        "workers": [_worker(version, replica) for replica in version.workers.all],
        "jobQueueStatus": version.queue.describe(),
        "state": version.status.state.value,
        **_overlap(version),
        **({"reason": version.status.reason} if version.status.reason else {}),
    }


def _overlap(version: ModelVersion) -> dict[str, Any]:
    """Empty until a worker has loaded the model, and for a model with stages, each of which has its own."""
    if (overlap := version.schema.overlap) is None:
        return {}
    reason = {} if overlap.enabled else {"reason": overlap.reason}
    return {"overlap": {"enabled": overlap.enabled, **reason}}


def _interpreter(version: ModelVersion) -> dict[str, Any]:
    """The interpreter of its workers; empty where it is the server's own."""
    described = version.environment.interpreter.describe()
    return {"interpreter": described} if described else {}


def _unhealthy(version: ModelVersion) -> dict[str, Any]:
    """The unhealthy devices that the version may use; empty if all are healthy."""
    listed = [device._asdict() for device in version.resources.unhealthy_devices]
    return {"unhealthyDevices": listed} if listed else {}


def kserve_ready(version: ModelVersion, asked: str = "") -> dict[str, Any]:
    """KServe v1: a model is ready when one of its workers answers (TorchServe's rule), or
    the first request starts one. `asked` is the name that was asked for."""
    return {"name": version.called(asked), "ready": version.workers.answer}


def _worker(version: ModelVersion, replica: Replica) -> dict[str, Any]:
    group, lease, devices = replica.group, replica.lease, replica.devices
    described: dict[str, Any] = {
        "id": str(replica.number),
        "startTime": _time(group.start_time) if group else None,
        "status": _status(replica),
        "memoryUsage": group.memory if group else 0,
        "pid": group.pid if group else None,
        "gpu": version.workers.use_devices,
        "gpuUsage": gpu_usage(devices),
        "devices": lease.device_ids if lease else None,
        "deviceUsage": worker_devices(devices) or None,
        "nodes": lease.placement.devices if lease and lease.placement else None,
        "generation": replica.generation,
        "release": (group.ranks.leader.release or None) if group else None,
        "phase": replica.phase or (None if group else version.environment.phase) or None,
        "waitsFor": replica.shortage._asdict() if replica.shortage else None,
        "ranks": [rank.describe() for rank in group.ranks] if group and len(group.ranks) > 1 else None,
        "sharedMemory": group.shared_memory if group else None,
        "lastError": replica.last_end.reason if replica.last_end else None,
    }
    return {name: value for name, value in described.items() if value is not None}


def _status(replica: Replica) -> str:
    """TorchServe has READY and UNLOADING; MSX adds the states between them."""
    if replica.group is not None and replica.state.value in ("READY", "STARTING"):
        return replica.group.state.value
    return replica.state.value


def _time(seconds: float) -> str:
    return rfc3339(seconds, "milliseconds")
