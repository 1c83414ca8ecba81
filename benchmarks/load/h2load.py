"""h2load as the load: HTTP/2 or HTTP/1.1 in C, which sends the same request again and again. It is part of nghttp2."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from benchmarks.load.client import Address
from benchmarks.load.result import Result
from benchmarks.load.started import StartedLoad

CONNECTIONS = 4
"""The gRPC calls in flight are spread over these connections."""
GRPC = {"content-type": "application/grpc", "te": "trailers"}
OCTETS = {"content-type": "application/octet-stream"}

_COUNTS = re.compile(r"requests: .* (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout")
_DATA = re.compile(r"traffic: .* \((\d+)\) data")
_TIME = re.compile(r"finished in ([0-9.]+)(us|ms|s),")
_numbers = count()
_MICROS = {"us": 1, "ms": 1_000, "s": 1_000_000}


@dataclass(frozen=True)
class H2load:
    program: str
    body: Path
    answer_size: int
    """Bytes of body (DATA) in each successful answer: a gRPC call that fails has status 200, too, but has no DATA."""
    headers: Mapping[str, str]
    clients: int | None
    """Connections at most, with several requests in flight on each; None: HTTP/1.1, one request on each."""

    @property
    def version(self) -> str:
        shown = subprocess.run([self.program, "--version"], capture_output=True, text=True, check=False)
        return shown.stdout.strip()

    def run(self, address: Address, path: str, *, connections: int, seconds: float) -> Result:
        """`connections` requests in flight. Raises click.ClickException when an answer was an error."""
        return self.start(address, path, connections=connections, seconds=seconds).result()

    def start(self, address: Address, path: str, *, connections: int, seconds: float) -> StartedLoad:
        log = self.body.with_name(f"times-{next(_numbers)}")
        command = [self.program, "-t1", *self._spread(connections), f"-D{max(round(seconds), 1)}"]
        command += ["-d", str(self.body), f"--log-file={log}"]
        for name, value in {**self.headers, **address.authorization}.items():
            command += ["-H", f"{name.lower()}: {value}"]
        return StartedLoad([*command, address.url + path], seconds, partial(self._read, address, log))

    def _read(self, address: Address, log: Path, output: str, errors: str) -> Result:
        result = parse(output, log.read_text() if log.exists() else "", self.answer_size)
        log.unlink(missing_ok=True)
        if result is None:
            raise click.ClickException(f"h2load failed: {errors.strip() or output.strip()}")
        if result.errors:
            raise click.ClickException(f"{result.errors} of {result.requests} requests to {address.url} went wrong.")
        return result

    def _spread(self, in_flight: int) -> list[str]:
        if self.clients is None:
            return ["--h1", f"-c{in_flight}", "-m1"]
        clients = min(self.clients, in_flight)
        return [f"-c{clients}", f"-m{in_flight // clients}"]


def parse(output: str, log: str, answer_size: int) -> Result | None:
    """h2load's report, and its log: a line a request of start, status and µs. None when nothing was answered."""
    counts, data, time = _COUNTS.search(output), _DATA.search(output), _TIME.search(output)
    times = sorted(int(line.split("\t")[2]) for line in log.splitlines())
    if not (counts and data and time and times):
        return None
    succeeded, *wrong = map(int, counts.groups())
    answered = int(data[1]) // answer_size  # of those at the end, some were answered and not counted
    return Result(
        requests=succeeded,
        micros=round(float(time[1]) * _MICROS[time[2]]),
        p50=times[len(times) // 2],
        p99=times[len(times) * 99 // 100],
        errors=sum(wrong) + max(succeeded - answered, 0),
    )


@contextmanager
def grpc_load(message: bytes, answer: bytes) -> Iterator[H2load]:
    """Sends this message, and expects answers of the size of `answer`; both without gRPC's five bytes of framing.

    Raises click.ClickException when h2load is not installed.
    """
    with _load(b"\0" + len(message).to_bytes(4, "big") + message, len(answer) + 5, GRPC, CONNECTIONS) as load:
        yield load


@contextmanager
def rest_load(body: bytes, clients: int | None) -> Iterator[H2load]:
    """Posts this body, and expects answers of its size. `clients`: connections of HTTP/2; None is HTTP/1.1.

    Raises click.ClickException when h2load is not installed.
    """
    with _load(body, len(body), OCTETS, clients) as load:
        yield load


@contextmanager
def _load(body: bytes, answer_size: int, headers: Mapping[str, str], clients: int | None) -> Iterator[H2load]:
    program = shutil.which("h2load")
    if program is None:
        raise click.ClickException(
            "This benchmark needs h2load, which is not on PATH: sudo apt-get install nghttp2-client."
        )
    with TemporaryDirectory(prefix="msx-benchmark-") as folder:
        file = Path(folder, "body")
        file.write_bytes(body)
        yield H2load(program, file, answer_size, headers, clients)
