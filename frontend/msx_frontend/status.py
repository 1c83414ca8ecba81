"""`msx-serve --status`: the servers, their models and workers, as a table."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from pathlib import Path
from typing import Any

import click

from msx_frontend.address import Address
from msx_frontend.instance import InstanceInfo
from msx_frontend.launch import started_text

HEADINGS = ("model", "version", "state", "worker", "pid", "status", "devices", "memory")


def show(info: InstanceInfo) -> None:
    """Ask the server itself; a server that does not answer is shown as such."""
    click.echo(started_text(info).replace("started", "running", 1))
    try:
        versions = [version for model in _models(info) for version in _ask(info, f"/models/{model}/all")]
    except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
        click.echo(f"  its management API does not answer: {error}")
        return
    rows = [row for version in versions for row in _rows(version)]
    _print([HEADINGS, *rows] if rows else [("no models are registered",)])
    for version in versions:
        if reason := version.get("reason"):
            click.echo(f"  {version['modelName']} {version['modelVersion']}: {reason}")


def _models(info: InstanceInfo) -> list[str]:
    """All of them: the list comes in pages."""
    names: list[str] = []
    page: str | None = "0"
    while page is not None:
        listed = _ask(info, f"/models?next_page_token={page}")
        names += [model["modelName"] for model in listed["models"]]
        page = listed.get("nextPageToken")
    return names


def _rows(version: dict[str, Any]) -> list[tuple[str, ...]]:
    head = (version["modelName"], version["modelVersion"], version["state"])
    rows: list[tuple[str, ...]] = []
    for worker in version["workers"]:
        rows.append((*head, *_worker(worker)))
        rows += [("", "", "", *_rank(worker["id"], rank)) for rank in worker.get("ranks", [])]
    return rows or [(*head, "-", "-", "-", "-", "-")]


def _worker(worker: dict[str, Any]) -> tuple[str, ...]:
    devices = worker.get("devices") or ("-" if worker["gpu"] else "cpu")
    return worker["id"], str(worker.get("pid", "-")), worker["status"], devices, _megabytes(worker)


def _rank(worker: str, rank: dict[str, Any]) -> tuple[str, ...]:
    return f"{worker} rank {rank['rank']}", str(rank["pid"]), rank["state"], "", _megabytes(rank)


def _megabytes(described: dict[str, Any]) -> str:
    return f"{described['memoryUsage'] / 1e6:.0f} MB"


def _ask(info: InstanceInfo, path: str) -> Any:
    """Without `http_proxy`: the server is on this machine."""
    connection = _connection(Address.parse(info.management).reachable, info.certificate)
    try:
        connection.request("GET", path, headers=_authorization(info))
        reply = connection.getresponse()
        if reply.status != 200:
            raise ValueError(f"{path}: HTTP status {reply.status}")
        return json.load(reply)
    finally:
        connection.close()


def _connection(address: Address, certificate: str | None) -> http.client.HTTPConnection:
    if address.is_unix:
        return _UnixConnection(address.path)
    if address.scheme == "https":
        context = ssl.create_default_context(cadata=certificate)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.check_hostname = False  # the very certificate is known, whatever name it bears
        return http.client.HTTPSConnection(address.host, address.port, timeout=5, context=context)
    return http.client.HTTPConnection(address.host, address.port, timeout=5)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=5)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _authorization(info: InstanceInfo) -> dict[str, str]:
    if info.key_file is None:
        return {}
    key = json.loads(Path(info.key_file).read_text())["management"]["key"]
    return {"Authorization": f"Bearer {key}"}


def _print(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows if column < len(row)) for column in range(len(rows[0]))]
    for row in rows:
        click.echo("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
