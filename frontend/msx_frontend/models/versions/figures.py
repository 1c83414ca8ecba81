"""The figures of a model version, which metrics, the console and `--status` read."""

from collections.abc import Callable, Sequence

from msx_frontend.metrics import ModelMetrics
from msx_frontend.metrics.engines import AdapterInfo
from msx_frontend.metrics.history import Totals
from msx_frontend.metrics.traces import Traces
from msx_frontend.models.versions.queue import VersionQueue
from msx_frontend.models.versions.request_counts import RequestCounts
from msx_frontend.models.versions.states import ModelState
from msx_frontend.models.versions.status import CommonStatus
from msx_frontend.models.versions.supervisor import Supervisor
from msx_frontend.models.versions.workers import VersionWorkers


class Figures:
    """Figures of a version, the same with stages and without."""

    def __init__(self, labels: tuple[str, str], metrics: ModelMetrics, status: CommonStatus) -> None:
        self.labels = labels
        self._metrics, self._status = metrics, status
        self.traffic_share: float | None = None
        """Share of the requests that name no version, from 0 to 1; None where the model's traffic is not divided."""

    @property
    def traces(self) -> Traces:
        return self._metrics.traces

    def totals(self) -> Totals:
        return self._metrics.totals()

    def adapter_info(self) -> AdapterInfo | None:
        return self._metrics.engines.adapters

    def states(self) -> dict[str, bool]:
        return {state.value: state is self._status.state for state in ModelState}


class VersionFigures(Figures):
    """The figures of a version without stages."""

    def __init__(
        self, supervisor: Supervisor, queue: VersionQueue, workers: VersionWorkers, metrics: ModelMetrics
    ) -> None:
        super().__init__(supervisor.labels, metrics, supervisor.status)
        self._queue, self._workers = queue, workers
        self._dispatcher, self._replicas = supervisor.dispatcher, supervisor.replicas
        self._autoscaler = supervisor.autoscaler

    def gauges(self) -> dict[str, float]:
        queued, running = self._queue.counts()
        groups = self._replicas.groups
        return {
            "msx_queue_depth": self._dispatcher.waiting,
            "msx_queue_instances": self._dispatcher.queue.instances,
            "msx_queue_oldest_seconds": self._dispatcher.oldest_age,
            "msx_requests_in_flight": sum(group.runner.busy for group in groups),
            "msx_requests_queued": queued,
            "msx_requests_running": running,
            "msx_kv_cache_utilization": self._metrics.engines.utilization,
            "msx_streams_waiting": sum(group.runner.waiting_streams for group in groups),
            **({} if self.traffic_share is None else {"msx_traffic_share": self.traffic_share}),
            "msx_workers_wanted": self._autoscaler.wanted,
            "msx_workers_ready": self._workers.ready,
            "msx_workers_waiting": self._workers.waiting,
        }

    def worker_memory(self) -> list[tuple[str, str, int]]:
        return list(self._replicas.memory())

    def device_memory(self) -> list[tuple[str, str, int]]:
        return list(self._replicas.device_memory())


class StagedFigures(Figures):
    """The figures of the stages, taken together."""

    def __init__(
        self,
        labels: tuple[str, str],
        metrics: ModelMetrics,
        status: CommonStatus,
        counts: Callable[[], RequestCounts],
        stages: Sequence[VersionFigures],
    ) -> None:
        """`counts` are those of clients' requests, of which several stages may have one at once."""
        super().__init__(labels, metrics, status)
        self._counts, self._stages = counts, stages

    def gauges(self) -> dict[str, float]:
        rows = [stage.gauges() for stage in self._stages]
        sums = {name: sum(row[name] for row in rows) for name in rows[0]}
        queued, running = self._counts()
        return {
            **sums,
            "msx_queue_oldest_seconds": max(row["msx_queue_oldest_seconds"] for row in rows),
            "msx_requests_queued": queued,
            "msx_requests_running": running,
            "msx_kv_cache_utilization": max(row["msx_kv_cache_utilization"] for row in rows),
        }

    def worker_memory(self) -> list[tuple[str, str, int]]:
        """Empty: each stage reports its own."""
        return []

    def device_memory(self) -> list[tuple[str, str, int]]:
        """Empty, too."""
        return []
