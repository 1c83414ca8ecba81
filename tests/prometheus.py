"""Reads Prometheus' text format as it stands; the parser of prometheus_client renames counters."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SAMPLE = re.compile(r"^([\w:]+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    """Name, labels, value."""
    for name, labels, value in _SAMPLE.findall(text):
        yield name, dict(_LABEL.findall(labels)), float(value)
