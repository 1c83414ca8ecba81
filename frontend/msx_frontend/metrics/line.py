"""TorchServe's metric lines, which handlers and commands print and the metric logs contain."""

import re

from msx_protocol import MetricSample

MARK = "[METRICS]"
_LINE = re.compile(
    r"\s*(?P<name>[\w\s]+)\.(?P<unit>[\w\s]+):(?P<value>[0-9\-,.e]+)\|#(?P<dimensions>[^|]*)(\|#type:(?P<type>[^|,]+))?"
    r"\|#hostname:(?P<hostname>[^,]+),(?P<time>[^,]+)(,(?P<requests>.*))?"
)
_KINDS = ("counter", "gauge", "histogram")


def parse_metric(line: str) -> MetricSample:
    """Parse `Name.Unit:value|#Dim:value,…|#type:GAUGE|#hostname:h,epoch[,ids]`; without a type it is a counter.

    Raises ValueError.
    """
    match = _LINE.fullmatch(line)
    kind = (match["type"] or "counter").strip().lower() if match else ""
    if match is None or kind not in _KINDS:
        raise ValueError(f"it is not a metric: {line[:200]!r}")
    pairs = [tuple(pair.split(":")) for pair in match["dimensions"].split(",")]
    labels = [(pair[0], pair[1]) for pair in pairs if len(pair) == 2]
    labels.append(("Hostname", match["hostname"]))
    return MetricSample(match["name"], kind, match["unit"], float(match["value"]), labels, match["requests"] or "")


def line_ends(name: str, unit: str, dimensions: list[tuple[str, str]], hostname: str) -> tuple[str, str]:
    """The text of all lines of one series before and after the value."""
    said = ",".join(f"{label}:{text}" for label, text in dimensions)
    return f"{name}.{unit}:", f"|#{said}|#hostname:{hostname}"


def metric_line(ends: tuple[str, str], value: float, requests: str, moment: float) -> str:
    """A line of the metric logs; `moment` in seconds since the epoch."""
    ids = f",requestID:{requests}" if requests else ""
    return f"{ends[0]}{float(value)!r}{ends[1]}{ids},timestamp:{int(moment)}"
