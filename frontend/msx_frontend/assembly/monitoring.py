"""The metrics of one server: counters, metric logs, and figures of its machine."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from json.encoder import encode_basestring as quoted
from pathlib import Path

from msx_frontend.apis.probes.family import PATHS as PROBES
from msx_frontend.config import ServerConfig
from msx_frontend.logs.access_log import AccessLog
from msx_frontend.logs.output import LogOutput
from msx_frontend.metrics import ServerMetrics
from msx_frontend.metrics.declared import load_spec
from msx_frontend.metrics.log import MetricLine, MetricLogs, Mirror
from msx_frontend.metrics.observer import ServerFigures
from msx_frontend.metrics.server import TracesJobs
from msx_frontend.metrics.system import Devices, SystemMetrics, of_command, of_machine
from msx_net.logged_calls import Entry, LoggedCall

HTTP, GRPC = "http", "grpc"

COMMAND_LIMIT = 10.0
"""Seconds that the command may run, or the interval if that is shorter: the stop of the server waits for it."""


class Monitoring:
    def __init__(
        self, config: ServerConfig, output: LogOutput, env: Mapping[str, str], spans: TracesJobs | None
    ) -> None:
        """`spans` is None where requests are not traced. Raises MetricsConfigError."""
        self._config = config
        written = config.metrics_mode in ("log", "legacy")
        logs = _logs(output, env) if written or output.access_file is not None else None
        self._logs = logs if written else None  # else they are there, empty, beside TorchServe's other log files
        self.metrics = ServerMetrics(
            config.metrics_mode,
            load_spec(config.metrics_config),
            auto_detect=config.model_metrics_auto_detect,
            logs=self._logs,
            spans=spans,
        )
        self._system: SystemMetrics | None = None

    def counted(self, access_log: AccessLog, *, by_key: bool) -> CountedReplies:
        """`by_key`: some keys have names."""
        return CountedReplies(access_log, self.metrics, by_key=by_key)

    def counted_calls(self, access_log: AccessLog) -> CountedCalls:
        return CountedCalls(access_log, self.metrics)

    def start(self, devices: Devices, figures: ServerFigures) -> None:
        """`devices` is called on a thread, the functions of `figures` on the loop's."""
        self.metrics.show(figures)
        if self._logs is not None:
            self._logs.start()
        config, interval = self._config, float(self._config.metric_time_interval)
        if config.disable_system_metrics:
            return
        if config.system_metrics_cmd:
            collect = of_command(config.system_metrics_cmd, min(interval, COMMAND_LIMIT))
        else:
            collect = of_machine(devices)
        self._system = SystemMetrics(collect, self.metrics.system, interval)

    async def close(self) -> None:
        if self._system is not None:
            await self._system.close()
        if self._logs is not None:
            await self._logs.close()


class CountedReplies:
    """The access log of the HTTP listeners, which also counts replies. Replies to probes are not counted: TorchServe
    does not have them, and a server that is not ready would count as failing."""

    def __init__(self, access_log: AccessLog, metrics: ServerMetrics, *, by_key: bool) -> None:
        self._write = access_log.write
        self._write_entry = access_log.write_entry
        self._count, self._counts = metrics.replied, metrics.replies_by_status
        self._keys = metrics.key_requests if by_key else None

    def write(self, call: LoggedCall, status: int) -> None:
        if call.target not in PROBES:
            self._count(status)
        if self._keys is not None and (name := call.key_name):
            self._keys.labels(name, HTTP, str(status)).inc()
        self._write(call, status)

    def write_entry(self, entry: Entry) -> None:
        """Write the entry of a prediction."""
        _, name, _, _, _, status = entry[0]
        if (series := self._counts.get(status)) is None:
            self._count(status)
        else:
            series.add(1.0)
        if name and self._keys is not None:
            self._keys.labels(name, HTTP, str(status)).inc()
        self._write_entry(entry)


class CountedCalls:
    """The access log of gRPC, which also counts calls by the name of the key."""

    def __init__(self, access_log: AccessLog, metrics: ServerMetrics) -> None:
        self._write, self._keys = access_log.write, metrics.key_requests

    def write(self, call: LoggedCall, status: int) -> None:
        if name := call.key_name:
            self._keys.labels(name, GRPC, str(status)).inc()
        self._write(call, status)


def _logs(output: LogOutput, env: Mapping[str, str]) -> MetricLogs:
    return MetricLogs(Path(env.get("METRICS_LOCATION") or "logs"), _mirror(output), output.file_mode)


def _mirror(output: LogOutput) -> Mirror:
    """Write metric lines to the console, too, as TorchServe does."""

    def to_logger(name: str, lines: list[MetricLine]) -> None:
        logger = logging.getLogger(f"msx.{name.lower()}")
        for line in lines:
            logger.info("%s", line.text)

    def as_json(name: str, lines: list[MetricLine]) -> None:
        head = f'"level":"INFO","logger":{quoted(name)},"message":'
        output.write("".join(f'{{"time":{line.moment:.3f},{head}{quoted(line.text)}}}\n' for line in lines))

    return to_logger if output.logger is not None else as_json
