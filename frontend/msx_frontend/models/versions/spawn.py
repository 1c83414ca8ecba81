"""Makes the specification that a generation of a worker group is started from: load messages and environments."""

import logging
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from msx_core.cgroup import cores_by_quota
from msx_core.replies.stream_credit import StreamBuffers
from msx_frontend import __version__
from msx_frontend.config import ServerConfig
from msx_frontend.config.surroundings import log_location
from msx_frontend.devices.core_binding import near_cores
from msx_frontend.devices.lease import Lease
from msx_frontend.devices.torch_devices import torch_devices
from msx_frontend.environments.build import WorkerPython
from msx_frontend.metrics.declared import load_spec
from msx_frontend.models.versions.model_source import ModelSource
from msx_frontend.models.versions.worker_rights import WorkerRights
from msx_frontend.tracing.settings import tracing_settings
from msx_frontend.workers.confinement import FREE, Confinement
from msx_frontend.workers.credentials import KEYS, without_credentials
from msx_frontend.workers.environment import node_environment, worker_environment
from msx_frontend.workers.launcher import GroupSpec, Launcher, RankSpec
from msx_frontend.workers.segments.allowance import READS, SegmentLimits
from msx_protocol import Load, MetricDeclaration

log = logging.getLogger("msx.workers")

OWN_PYTHON = WorkerPython(sys.executable)


class Spawner:
    """Knows the server's settings; a model version gives its source, its lease and its numbers."""

    def __init__(
        self,
        config: ServerConfig,
        launcher: Launcher,
        compiled_dir: Path,
        env: Mapping[str, str],
        rights: WorkerRights | None = None,
        host_processes: Callable[[], int] = int,
        runs: Callable[[GroupSpec], bool] = lambda spec: False,
    ) -> None:
        """`host_processes`: see `Load`. `runs` says whether a group runs already, of a server before this one."""
        self.launcher, self.runs = launcher, runs
        self._host_processes = host_processes
        self._stream_buffers = StreamBuffers(config.stream_buffer_size)
        self._config = config
        self._compiled_dir = compiled_dir
        self._rights = rights
        self._fewer_cores = cores_by_quota()
        inherited = without_credentials(env, keep_stores=config.worker_credentials)
        self._env = {**inherited, **_told(config, env)}
        if (tracing := tracing_settings(config, env)) is not None:
            self._env |= tracing.environment
        if left := sorted(env.keys() - inherited.keys() - KEYS):
            log.info("workers do not inherit %s (worker_credentials=true hands them on)", ", ".join(left))
        declared = load_spec(config.metrics_config).model
        self._metrics = [MetricDeclaration(kind, one.name, one.unit, list(one.dimensions)) for kind, one in declared]

    async def prepare(self, source: ModelSource) -> None:
        """Before each generation. Raises ServiceUnavailable."""
        if self._rights is not None:
            await self._rights.prepare(source.digest)

    def spec(
        self,
        source: ModelSource,
        lease: Lease,
        number: int,
        generation: int,
        place: WorkerPython = OWN_PYTHON,
        *,
        at: int = 0,
    ) -> GroupSpec:
        """`at`: which of the version's workers it is, from 0 (`env:`)."""
        config = source.config
        ranks = [self._rank(source, lease, rank, number, place.site_dir) for rank in range(config.layout.ranks)]
        return GroupSpec(
            ranks=tuple(_at(rank, at, config.environment(at)) for rank in ranks),
            startup_timeout=float(config.startup_timeout),
            response_timeout=float(config.response_timeout),
            max_concurrent=config.max_concurrent,
            slots=config.batch_size * (2 if config.stateful else 1),
            rank_skew_timeout=config.rank_skew_timeout,
            max_memory=None if config.max_worker_memory is None else config.max_worker_memory << 20,
            meets=_meets(source),
            worker=number,
            generation=generation,
            python=place.python,
            stream_buffers=self._stream_buffers,
            segments=_segments(source) if lease.placement is None else None,
            placement=lease.placement,
            lease=lease,
            part=source.name if source.stage_of else "",
        )

    def _rank(self, source: ModelSource, lease: Lease, rank: int, number: int, site_dir: str | None) -> RankSpec:
        return RankSpec(
            load=self._load(source, lease, rank, site_dir),
            env=self._environment(source, lease, rank) | _serving_device(source, lease, number),
            confinement=self._confinement(source, lease, rank),
        )

    def _confinement(self, source: ModelSource, lease: Lease, rank: int) -> Confinement:
        confinement = FREE if self._rights is None else self._rights.of(source.digest)
        if lease.placement is not None or not (source.config.bind_cores and lease.devices):
            return confinement
        return replace(
            confinement, cores=near_cores(lease.model_key, lease.devices_of(rank, source.config.layout.ranks))
        )

    def _load(self, source: ModelSource, lease: Lease, rank: int, site_dir: str | None) -> Load:
        config, server = source.config, self._config
        layout = config.layout
        there = lease.placement.place_of(rank) if lease.placement is not None else None
        device = rank if lease.devices else None
        return Load(
            model_name=source.model,
            model_version=source.version,
            model_dir=str(source.model_dir),
            site_dir=site_dir,
            handler=source.handler,
            manifest=source.manifest,
            config=config.raw,
            batch_size=config.batch_size,
            isolate_batch_errors=config.isolate_batch_errors and not config.stateful,
            device_id=device if there is None else there.device_id,
            framework_device=lease.framework,
            torch_devices=torch_devices(lease, rank),
            rank=rank,
            local_rank=rank if there is None else there.local_rank,
            world_size=layout.ranks,
            input_ranks=layout.tensor_parallel if layout.ranks > 1 else 1,
            cache_dir=str(self._compiled_dir / source.digest),
            decode_input=server.decode_input_request,
            limit_max_image_pixels=server.limit_max_image_pixels,
            max_response_size=server.max_response_size,
            max_value_size=config.edge_memory << 20 if source.stage_of else 0,
            stream_credit=self._stream_buffers.first,
            stream_heartbeat=server.stream_heartbeat,
            stream_early_head=server.stream_early_head,
            server_version=__version__,
            service_envelope=server.service_envelope or "",
            model_metrics=self._metrics,
            continuous=config.continuous_batching,
            log_calls=server.metrics_mode in ("log", "legacy"),
            max_request_size=server.max_request_size,
            max_request_elements=server.max_request_elements,
            text_limits=server.text_limits,
            servable=source.servable,
            from_older_server=source.from_older_server,
            host_processes=0 if lease.devices or there is not None else self._host_processes(),
        )

    def _environment(self, source: ModelSource, lease: Lease, rank: int) -> dict[str, str]:
        launcher = source.config.msrun or source.config.torchrun
        if lease.placement is not None:
            return node_environment(
                self._env,
                lease.placement.place_of(rank),
                devices=lease.placement.environment_of(rank),
                rank=rank,
                world_size=source.config.layout.ranks,
                meets=_meets(source),
                omp_threads=launcher.omp_number_threads if launcher else None,
                sequence_keys=self._config.sequence_keys,
                blocked=self._config.blacklist_env_vars,
            )
        chosen = source.config.mindspore.threads or source.config.layout.ranks > 1  # each rank has one thread
        return worker_environment(
            self._env,
            source.model_dir,
            devices=lease.environment,
            rank=rank,
            world_size=source.config.layout.ranks,
            meets=_meets(source),
            sequence_keys=self._config.sequence_keys,
            omp_threads=launcher.omp_number_threads if launcher else None,
            fewer_cores=None if chosen else self._fewer_cores,
            blocked=self._config.blacklist_env_vars,
        )


def _at(rank: RankSpec, place: int, env: Mapping[str, str]) -> RankSpec:
    """`env`: what the model's `env:` adds for the worker at this place."""
    return replace(rank, env={**rank.env, **env}, load=structs.replace(rank.load, place=place))


def _meets(source: ModelSource) -> bool:
    """Whether its ranks are started as torchrun starts them: a worker of `custom` is one process, as others are."""
    return source.config.parallel_type not in ("", "custom")


def _segments(source: ModelSource) -> SegmentLimits | None:
    """The shared memory that a stage's worker may write; a last stage reads that of others, and writes none."""
    if not source.stage_of:
        return None
    config = source.config
    return SegmentLimits(config.shared_memory << 20, config.shared_segments) if source.passes_on else READS


def _serving_device(source: ModelSource, lease: Lease, number: int) -> dict[str, str]:
    """Variable of MindSpore Serving for workers of a start script's devices, also on a machine without devices: there
    consecutive workers stand for the ids."""
    ids = source.config.device_ids
    if source.servable is None or not ids:
        return {}
    return {"SERVING_DEVICE_ID": str(lease.numbers[0] if lease.numbers else ids[number % len(ids)])}


def _told(config: ServerConfig, env: Mapping[str, str]) -> dict[str, str]:
    """The variables that TorchServe sets for its workers. Folders are absolute, because a worker has its own working
    folder."""
    return {
        "LOG_LOCATION": os.path.abspath(log_location(env)),
        "METRICS_LOCATION": os.path.abspath(env.get("METRICS_LOCATION") or "logs"),
        "TS_DECODE_INPUT_REQUEST": str(config.decode_input_request).lower(),
    }
