"""The devices of a server in the output of `msx-serve --status`."""

from collections.abc import Mapping
from typing import Any

HEADINGS = ("device", "id", "name", "load", "memory", "temperature", "ECC errors")
MIB = 1 << 20


def device_rows(devices: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Rows of the table with its headings; empty where the server has no devices but simulated ones."""
    rows = [_row(one) for one in devices if not one.get("simulated")]
    return [HEADINGS, *rows] if rows else []


def devices_of(worker: dict[str, Any]) -> str:
    """The server's numbers of a worker's devices, and how much of their memory is the worker's: `0 (512 MB),1`."""
    return ",".join(map(_used, worker.get("deviceUsage", []))) or worker.get("devices", "cpu")


def count_errors(errors: Mapping[str, int]) -> str:
    """Counters of ECC errors that are not 0: `3 corrected, 1 uncorrected`."""
    return ", ".join(f"{count} {name}" for name, count in errors.items() if count)


def _row(device: dict[str, Any]) -> tuple[str, ...]:
    errors = device.get("memoryErrors")
    return (
        str(device["device"]),
        device["id"],
        device["name"],
        _figure(device.get("utilization"), "%"),
        _memory(device),
        _figure(device.get("temperature"), "°C"),
        "-" if errors is None else count_errors(errors) or "0",
    )


def _memory(device: dict[str, Any]) -> str:
    if "memoryUsed" not in device or "memoryTotal" not in device:
        return "-"
    return f"{device['memoryUsed'] // MIB} of {device['memoryTotal'] // MIB} MB"


def _figure(value: int | None, unit: str) -> str:
    return "-" if value is None else f"{value} {unit}"


def _used(device: dict[str, Any]) -> str:
    memory = device.get("workerMemory")
    return str(device["device"]) + ("" if memory is None else f" ({memory // MIB} MB)")
