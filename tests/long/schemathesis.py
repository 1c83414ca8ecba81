"""Runs schemathesis against a listener, and reads what it has found."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
EVENTS = "text/event-stream"
SHOWN = 600
"""Characters of a reply."""


class Finding(NamedTuple):
    """`text`: the reply, and what schemathesis says of it. `status` is 0 where there was no reply."""

    operation: str
    check: str
    status: int
    text: str
    request: str


def run(python: str, document: dict[str, Any], url: str, key: str, folder: Path, examples: int) -> list[Finding]:
    """All that is wrong, each once. `examples`: requests made up for an operation, beside those for each constraint."""
    described, report = folder / "openapi.json", folder / "report.ndjson"
    described.write_text(json.dumps(with_events(document)))
    command = [str(Path(python).with_name("st")), "--no-color", "run", str(described), "--url", url]
    command += ["--header", f"Authorization: Bearer {key}", "--checks", CHECKS, "--continue-on-failure"]
    command += ["--phases", "examples,coverage,fuzzing", "--max-examples", str(examples), "--no-shrink"]
    command += ["--generation-deterministic"]
    command += ["--report", "ndjson", "--report-ndjson-path", str(report)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    lines = report.read_text().splitlines()
    assert any("EngineFinished" in line for line in lines), done.stdout + done.stderr
    found = {(one.operation, one.check, one.status, one.text[:80]): one for line in lines for one in _findings(line)}
    return list(found.values())


def with_events(document: dict[str, Any]) -> dict[str, Any]:
    """OpenAPI 3.1 has no word for events, so that the document has the schema of their data. Schemathesis reads it as
    that of each event, which is the meaning of OpenAPI 3.2."""
    for operation in [one for methods in document["paths"].values() for one in methods.values()]:
        for response in operation["responses"].values():
            if (content := response.get("content", {}).get(EVENTS)) is not None:
                data = {"type": "string", "contentMediaType": "application/json", "contentSchema": content["schema"]}
                content["schema"] = {"type": "object", "properties": {"data": data}}
    return document


def _findings(line: str) -> Iterator[Finding]:
    (name, event), *_ = json.loads(line).items()
    if name == "NonFatalError":
        yield Finding(event["label"], "error", 0, event["value"]["message"], "")
    if name == "ScenarioFinished":
        recorder = event["recorder"]
        for case, checks in recorder.get("checks", {}).items():
            for check in checks:
                if check["status"] == "failure":
                    yield _finding(recorder["label"], check, recorder["interactions"].get(case, {}))


def _finding(operation: str, check: dict[str, Any], interaction: dict[str, Any]) -> Finding:
    request, reply = interaction.get("request") or {}, interaction.get("response") or {}
    failure = check["failure_info"]["failure"]
    said = f"{_body(reply.get('content'))} | {failure['title']}: {failure['message']}"
    asked = f"{request.get('method')} {request.get('uri')} {_body(request.get('body'))}"
    return Finding(operation, check["name"], reply.get("status_code", 0), said, asked)


def _body(encoded: dict[str, str] | None) -> str:
    return base64.b64decode((encoded or {}).get("$base64", "")).decode(errors="backslashreplace")[:SHOWN]
