"""wrk as the load: one thread of C costs a tenth of what the server costs, so that the server is the bottleneck."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import msgspec

from benchmarks.load.client import Address
from benchmarks.load.result import Result
from benchmarks.load.started import StartedLoad

SCRIPT = """\
wrk.method = "POST"
%s
function done(summary, latency, requests)
  local e = summary.errors
  local errors = e.connect + e.read + e.write + e.status + e.timeout
  io.write(string.format('RESULT {"requests":%%d,"micros":%%d,"p50":%%d,"p99":%%d,"errors":%%d}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), errors))
end
"""

STRING = """\
wrk.body = '"' .. string.rep("x", %d) .. '"'
wrk.headers["Content-Type"] = "application/octet-stream"
"""
FILE = """\
wrk.body = io.open("%s", "rb"):read("*a")
"""
"""The body, whatever its bytes are."""


@dataclass(frozen=True)
class Wrk:
    program: str
    script: Path
    timeout: int = 2
    """Seconds (wrk's default) after which an answer counts as an error."""

    @property
    def version(self) -> str:
        shown = subprocess.run([self.program, "-v"], capture_output=True, text=True, check=False)
        return shown.stdout.split("[")[0].strip()

    def run(self, address: Address, path: str, *, connections: int, seconds: float) -> Result:
        """Raises click.ClickException when an answer was an error: such a rate says nothing."""
        return self.start(address, path, connections=connections, seconds=seconds).result()

    def start(self, address: Address, path: str, *, connections: int, seconds: float) -> StartedLoad:
        command = [self.program, "-t1", f"-c{connections}", f"-d{max(round(seconds), 1)}s", "-s", str(self.script)]
        command += ["--timeout", f"{self.timeout}s"]
        for name, value in address.authorization.items():
            command += ["-H", f"{name}: {value}"]
        return StartedLoad([*command, address.url + path], seconds, partial(_read, address))


def _read(address: Address, output: str, errors: str) -> Result:
    result = parse(output)
    if result is None:
        raise click.ClickException(f"wrk failed: {errors.strip() or output.strip()}")
    if result.errors or not result.requests:
        raise click.ClickException(f"{result.errors} of {result.requests} requests to {address.url} went wrong.")
    return result


def parse(output: str) -> Result | None:
    """The line that the script writes at the end."""
    for line in output.splitlines():
        if line.startswith("RESULT "):
            return msgspec.json.decode(line.removeprefix("RESULT "), type=Result)
    return None


@contextmanager
def wrk(body_size: int) -> Iterator[Wrk]:
    """Posts JSON strings of this size in bytes, quotes and all. Raises click.ClickException without wrk."""
    with TemporaryDirectory(prefix="msx-benchmark-") as folder:
        yield _wrk(Path(folder), STRING % (body_size - 2))


@contextmanager
def wrk_of(body: bytes, headers: Mapping[str, str], *, timeout: int = 2) -> Iterator[Wrk]:
    """Posts this body with these headers. Raises click.ClickException without wrk."""
    with TemporaryDirectory(prefix="msx-benchmark-") as folder:
        file = Path(folder, "body")
        file.write_bytes(body)
        lines = [f'wrk.headers["{name}"] = "{value}"' for name, value in headers.items()]
        yield replace(_wrk(Path(folder), FILE % file + "\n".join(lines)), timeout=timeout)


def _wrk(folder: Path, request: str) -> Wrk:
    program = shutil.which("wrk")
    if program is None:
        raise click.ClickException("This benchmark needs wrk, which is not on PATH: sudo apt-get install wrk.")
    script = folder / "post.lua"
    script.write_text(SCRIPT % request)
    return Wrk(program, script)
