"""Gauges of model versions, read at each scrape."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from msx_frontend.metrics.carried_counts import CarriedCounts
from msx_frontend.metrics.engines import AdapterInfo

MODEL = ("model", "version")


class ObservedModel(Protocol):
    """The figures of a model version that each scrape reads."""

    @property
    def labels(self) -> tuple[str, str]: ...

    def states(self) -> dict[str, bool]:
        """Each state that it may have, and whether it is in it."""

    def gauges(self) -> dict[str, float]:
        """Gauge name to value."""

    def adapter_info(self) -> AdapterInfo | None:
        """None where it has no adapters."""

    def worker_memory(self) -> list[tuple[str, str, int]]:
        """Worker, rank, resident bytes."""

    def device_memory(self) -> list[tuple[str, str, int]]:
        """Worker, the server's number of a device, and bytes that the worker's processes have there."""


CLUSTER: dict[str, tuple[str, tuple[str, ...]]] = {
    "msx_cluster_up": ("1 while workers can be placed in the cluster", ()),
    "msx_cluster_nodes": ("Nodes of the cluster that are alive", ()),
    "msx_cluster_devices": ("NPUs of the cluster's nodes", ()),
    "msx_cluster_devices_free": ("NPUs of the cluster's nodes that nobody has reserved", ()),
    "msx_rank_node": ("1 for the node that a rank is on", (*MODEL, "worker", "rank", "node")),
}

Figure = tuple[str, tuple[str, ...], float]
"""Name, values of the labels, and value of a gauge."""


class ObservedDevice(NamedTuple):
    """`number` is the server's."""

    number: int
    healthy: bool
    temperature: int | None = None
    """°C; None where it is not known."""
    memory_errors: Mapping[str, int] = MappingProxyType({})
    """Counters of ECC errors by the driver's name."""


@dataclass(frozen=True)
class ServerFigures:
    """Figures of the server itself, read at each scrape. A part that has not started has none."""

    held: Callable[[], int] = int
    """Bytes of requests that the server holds."""
    devices: Callable[[], Iterable[ObservedDevice]] = tuple
    cluster: Callable[[], Iterable[Figure]] = tuple
    """The gauges of the cluster that workers run on."""
    connections: Callable[[], Iterable[tuple[str, int]]] = tuple
    """Each listener, and how many connections it has."""
    shed: Callable[[], int] = int
    """Idle connections that were closed because there were too many."""
    spans: Callable[[], dict[str, int]] = dict
    """Spans of sampled requests, counted by what became of them."""
    certificate_end: Callable[[], float | None] = lambda: None
    """Until when the listeners' certificates are valid, in seconds since the epoch; None without TLS."""
    unknown_keys: int = 0
    """Keys of the configuration that the server does not have."""


class ModelGauges(Collector):
    """Gauges that are read at each scrape."""

    HELP = {
        "msx_queue_depth": "Requests waiting for a worker",
        "msx_queue_instances": "Instances of requests waiting for a worker",
        "msx_queue_oldest_seconds": "Age of the oldest waiting request",
        "msx_requests_in_flight": "Requests being worked on",
        "msx_requests_queued": "Requests on which no worker works yet",
        "msx_requests_running": "Requests on which workers work",
        "msx_kv_cache_utilization": "Share of the workers' caches of keys and values that is used, 0 to 1",
        "msx_streams_waiting": "Streams that wait for clients which read slowly",
        "msx_traffic_share": "Share of the requests without a version that this one gets, where they are divided",
        "msx_workers_wanted": "Workers asked for",
        "msx_workers_ready": "Workers that answer",
        "msx_workers_waiting": "Workers that cannot start, because what they need is missing",
    }

    def __init__(self, versions: list[ObservedModel]) -> None:
        self._versions, self.figures = versions, ServerFigures()
        self._shed = CarriedCounts("msx_connections_shed", "", lambda: {"": self.figures.shed()})
        self._spans = CarriedCounts("msx_spans", "result", lambda: self.figures.spans())
        self.carried = (self._shed, self._spans)
        """Counters that go on in the next server."""
        self._seen: list[Metric] = []
        self.look()

    def look(self) -> None:
        """Read the figures on the loop's thread, which owns them."""
        families = {name: GaugeMetricFamily(name, text, labels=MODEL) for name, text in self.HELP.items()}
        memory = GaugeMetricFamily(
            "msx_worker_memory_bytes", "Resident memory of a worker process", labels=(*MODEL, "worker", "rank")
        )
        on_devices = GaugeMetricFamily(
            "msx_worker_device_memory_bytes",
            "Memory of a worker's processes on a device",
            labels=(*MODEL, "worker", "device"),
        )
        states = GaugeMetricFamily(
            "msx_model_state", "1 for the state that a model version is in", labels=(*MODEL, "state")
        )
        adapters = GaugeMetricFamily(
            "msx_lora_requests_info",
            "Adapters with requests by name, and when their engine told of them",
            labels=(*MODEL, "running_lora_adapters", "waiting_lora_adapters", "max_lora"),
        )
        for version in self._versions:
            if (info := version.adapter_info()) is not None:
                names = ",".join(info.running), ",".join(info.waiting)
                adapters.add_metric((*version.labels, *names, str(info.places)), info.told)
            for state, is_current in version.states().items():
                states.add_metric((*version.labels, state), float(is_current))
            for name, value in version.gauges().items():
                families[name].add_metric(version.labels, value)
            for worker, rank, size in version.worker_memory():
                memory.add_metric((*version.labels, worker, rank), size)
            for worker, device, size in version.device_memory():
                on_devices.add_metric((*version.labels, worker, device), size)
        held = GaugeMetricFamily("msx_queued_bytes", "Bytes of requests that wait or run", value=self.figures.held())
        self._seen = [
            *families.values(),
            states,
            memory,
            on_devices,
            adapters,
            held,
            *self._devices(),
            *self._connections(),
            *self._settings(),
            *self._cluster(),
        ]

    def _devices(self) -> list[Metric]:
        """Temperatures and errors have no samples where the driver gives none."""
        health = GaugeMetricFamily("msx_device_healthy", "1 for a device that models may run on", labels=("device",))
        warmth = GaugeMetricFamily("msx_device_temperature_celsius", "Temperature of a device", labels=("device",))
        errors = CounterMetricFamily(
            "msx_device_memory_errors", "ECC errors that the driver has counted", labels=("device", "kind")
        )
        for device in self.figures.devices():
            number = str(device.number)
            health.add_metric((number,), float(device.healthy))
            if device.temperature is not None:
                warmth.add_metric((number,), device.temperature)
            for kind, count in device.memory_errors.items():
                errors.add_metric((number, kind), count)
        return [health, warmth, errors]

    def _cluster(self) -> Iterable[Metric]:
        """Gauges of the cluster, without samples where there is none."""
        found = {name: GaugeMetricFamily(name, text, labels=labels) for name, (text, labels) in CLUSTER.items()}
        for name, labels, value in self.figures.cluster():
            found[name].add_metric(labels, value)
        return found.values()

    def _settings(self) -> Iterable[Metric]:
        """The certificate has no sample where no listener speaks TLS."""
        yield GaugeMetricFamily(
            "msx_certificate_not_after_seconds",
            "Until when the certificates of the listeners are valid, since the epoch",
            value=self.figures.certificate_end(),
        )
        yield GaugeMetricFamily(
            "msx_config_unknown_keys", "Keys of the configuration that are not known", value=self.figures.unknown_keys
        )

    def _connections(self) -> list[Metric]:
        known = GaugeMetricFamily("msx_connections", "Open connections of clients", labels=("listener",))
        for listener, count in self.figures.connections():
            known.add_metric((listener,), count)
        shed = CounterMetricFamily(
            self._shed.name, "Idle connections closed because there were too many", value=self._shed.all[""]
        )
        return [known, shed, self._counted_spans()]

    def _counted_spans(self) -> Metric:
        """Read the counter, which has no samples where requests are not traced."""
        help, labels = "Spans of sampled requests by what became of them", self._spans.shape
        made = CounterMetricFamily(self._spans.name, help, labels=labels)
        for result, count in self._spans.all.items():
            made.add_metric((result,), count)
        return made

    def describe(self) -> Iterable[Metric]:
        return self._seen

    def collect(self) -> Iterable[Metric]:
        return self._seen
