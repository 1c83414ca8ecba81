"""h2load as the load for gRPC: HTTP/2 in C, which sends the same call again and again. It is part of nghttp2."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from benchmarks.load.client import Address
from benchmarks.load.wrk import Result

CONNECTIONS = 4
"""The requests in flight are spread over these connections."""

_COUNTS = re.compile(r"requests: .* (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout")
_DATA = re.compile(r"traffic: .* \((\d+)\) data")
_TIME = re.compile(r"finished in ([0-9.]+)(us|ms|s),")
_MICROS = {"us": 1, "ms": 1_000, "s": 1_000_000}


@dataclass(frozen=True)
class H2load:
    program: str
    body: Path
    answer_size: int
    """Bytes of DATA in each successful answer: a failed call has HTTP's status 200, too, but has no DATA."""

    @property
    def version(self) -> str:
        shown = subprocess.run([self.program, "--version"], capture_output=True, text=True, check=False)
        return shown.stdout.strip()

    def run(self, address: Address, path: str, *, connections: int, seconds: float) -> Result:
        """`connections` calls in flight. Raises click.ClickException when an answer was an error."""
        clients = min(CONNECTIONS, connections)
        log = self.body.with_name("times")
        log.unlink(missing_ok=True)
        command = [self.program, "-t1", f"-c{clients}", f"-m{connections // clients}", f"-D{max(round(seconds), 1)}"]
        command += ["-d", str(self.body), f"--log-file={log}", "-H", "content-type: application/grpc"]
        command += ["-H", "te: trailers"]
        for name, value in address.authorization.items():
            command += ["-H", f"{name.lower()}: {value}"]
        done = subprocess.run(
            [*command, address.url + path], capture_output=True, text=True, timeout=seconds + 30, check=False
        )
        result = parse(done.stdout, log.read_text() if log.exists() else "", self.answer_size)
        if result is None:
            raise click.ClickException(f"h2load failed: {done.stderr.strip() or done.stdout.strip()}")
        if result.errors:
            raise click.ClickException(f"{result.errors} of {result.requests} calls to {address.url} went wrong.")
        return result


def parse(output: str, log: str, answer_size: int) -> Result | None:
    """h2load's report, and its log: a line a request of start, status and µs."""
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
def h2load(message: bytes, answer: bytes) -> Iterator[H2load]:
    """Sends this message, and expects answers of the size of `answer`; both without gRPC's five bytes of framing.

    Raises click.ClickException when h2load is not installed.
    """
    program = shutil.which("h2load")
    if program is None:
        raise click.ClickException(
            "This benchmark needs h2load, which is not on PATH: sudo apt-get install nghttp2-client."
        )
    with TemporaryDirectory(prefix="msx-benchmark-") as folder:
        body = Path(folder, "call")
        body.write_bytes(b"\0" + len(message).to_bytes(4, "big") + message)
        yield H2load(program, body, len(answer) + 5)
