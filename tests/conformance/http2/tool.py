"""Runs h2spec itself against real servers: `scripts/h2spec`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from tests.certificates import Certificate, write_pem
from tests.e2e.server import RunningServer, new_store, pack_service, run_server

MODEL = "report"
"""Answers a GET without a body by some bytes: cases of h2spec count them."""

PREFACE = "http2/3.5: Sends invalid connection preface"
HTTP1_TOO = "A port that speaks HTTP/1.1, too, answers it as HTTP/1.1: 400, and the end of the connection."
LONGEST = 600
"""Seconds of one run of h2spec."""


class Listener(NamedTuple):
    """A target of h2spec. `known` are the cases that may fail, with the reason."""

    name: str
    key: str
    """One of the server's addresses."""
    path: str
    known: dict[str, str]

    def command(self, tool: str, address: str, report: Path, *, tls: bool) -> list[str]:
        host, _, port = address.rpartition("//")[2].rpartition(":")
        command = [tool, "--strict", "-h", host, "-p", port, "-P", self.path, "-j", str(report)]
        return [*command, "--tls", "--insecure"] if tls else command


CLEAR_TEXT = (
    Listener("REST, a probe", "inference", "/livez", {PREFACE: HTTP1_TOO}),
    Listener("REST, a prediction", "inference", f"/predictions/{MODEL}", {PREFACE: HTTP1_TOO}),
    Listener("REST, management", "management", "/models", {PREFACE: HTTP1_TOO}),
    Listener("gRPC", "grpc_inference", "/grpc.health.v1.Health/Check", {}),
)
TLS = tuple(one._replace(name=f"{one.name}, TLS", known={}) for one in CLEAR_TEXT if one.key != "management")


class Report(NamedTuple):
    """Names of cases, each behind its section."""

    cases: int
    skipped: list[str]
    failed: list[str]

    def faults(self, known: dict[str, str]) -> list[str]:
        """List the cases that are not as they should be."""
        found = [f"failed: {name}" for name in self.failed if name not in known]
        found += [f"skipped: {name}" for name in self.skipped]
        found += [f"passes, and is among those that may fail: {name}" for name in known if name not in self.failed]
        return found if self.cases else ["no case was run"]


def read_report(text: str) -> Report:
    """A report in JUnit's form."""
    cases = [*ElementTree.fromstring(text).iter("testcase")]

    def named(*tags: str) -> list[str]:
        return [_name(one) for one in cases if any(one.find(tag) is not None for tag in tags)]

    return Report(len(cases), named("skipped"), named("error", "failure"))


def _name(case: ElementTree.Element) -> str:
    return f"{case.get('package')}: {case.get('classname')}"


def run_tool(tool: str, listener: Listener, server: RunningServer, folder: Path, *, tls: bool) -> Report:
    report = folder / "report.xml"
    command = listener.command(tool, server.info[listener.key], report, tls=tls)
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
    if not report.exists():
        raise RuntimeError(f"{' '.join(command)} has written no report: {ended.stdout}{ended.stderr}")
    text = report.read_text()
    report.unlink()
    return read_report(text)


def run_all(tool: str, folder: Path) -> Iterator[tuple[Listener, Report]]:
    """One server in clear text, one over TLS."""
    key, certificate = write_pem(Certificate.make(), folder)
    tls = f"inference_address=https://127.0.0.1:0\nenable_grpc_ssl=true\nprivate_key_file={key}\n"
    for name, listeners, properties in (
        ("clear", CLEAR_TEXT, ""),
        ("tls", TLS, f"{tls}certificate_file={certificate}\n"),
    ):
        place = folder / name
        place.mkdir()
        pack_service(MODEL, new_store(place))
        with run_server(place, "--models", f"{MODEL}.mar", properties=properties) as server:
            for listener in listeners:
                yield listener, run_tool(tool, listener, server, place, tls=listeners is TLS)


def main(tool: str) -> int:
    """The exit code: 1 where a case fails that may not."""
    code = 0
    with tempfile.TemporaryDirectory(prefix="msx-h2spec.") as folder:
        for listener, report in run_all(tool, Path(folder)):
            known = [name for name in report.failed if name in listener.known]
            print(f"{listener.name}: {report.cases - len(report.failed)} of {report.cases} cases pass")
            _print([f"may fail: {name}. {listener.known[name]}" for name in known])
            _print(faults := report.faults(listener.known))
            code = code or int(bool(faults))
    return code


def _print(lines: Sequence[str]) -> None:
    for line in lines:
        print(f"  {line}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(os.environ.get("H2SPEC", "h2spec")))
