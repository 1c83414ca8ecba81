"""A hub on this machine that speaks Hugging Face's protocol and ModelScope's, with the faults of networks."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

LARGE = 10_000
"""Files from this size on are said by their SHA-256, as Git LFS does; smaller ones by the hash of their blob."""


@dataclass
class Repository:
    files: dict[str, bytes]
    commit: str = "a" * 40
    others: dict[str, str] = field(default_factory=dict)
    """Commits of other branches and tags."""
    token: str = ""
    said_sizes: dict[str, int] = field(default_factory=dict)
    """Sizes in the listing, where they are not the truth."""

    def commit_of(self, revision: str) -> str:
        commits = {commit: commit for commit in (self.commit, *self.others.values())}
        names = {"main": self.commit, "master": self.commit, **commits, **self.others}
        return names.get(revision, "")


class HubServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host: str) -> None:
        super().__init__((host, 0), _Handler)
        self.host = host
        self.repositories: dict[str, Repository] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        """Path with its query, and the headers by their lower-case names, of every request."""
        self.breaks: dict[str, list[int]] = {}
        """By the path of a file: after how many bytes its next connections end."""
        self.damaged: dict[str, bytes] = {}
        """Bytes sent instead of a file."""
        self.redirects: dict[str, str] = {}
        """By the name of a file, or "" for the listing: its URL, or a server that has the same paths."""
        self.knows_ranges = True
        self.gate = threading.Event()
        """Large files wait for it after their first half."""
        self.gate.set()

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that leave are expected."""

    def reads(self, name: str) -> list[str]:
        """The ranges that were asked for of a file."""
        return [headers.get("range", "") for path, headers in self.asked if _file_of(path).endswith(f"/{name}")]


@contextmanager
def hub_server(host: str = "127.0.0.1") -> Iterator[HubServer]:
    with HubServer(host) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.gate.set()
            server.shutdown()
            thread.join()


def _git(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _is_of_file(path: str) -> bool:
    return "/resolve/" in path or "FilePath=" in path


def _file_of(path: str) -> str:
    query = parse_qs(urlsplit(path).query)
    return f"/{query['FilePath'][0]}" if "FilePath" in query else unquote(urlsplit(path).path)


class _Handler(BaseHTTPRequestHandler):
    server: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((self.path, headers))
        name = _file_of(self.path).rpartition("/")[2] if _is_of_file(self.path) else ""
        if (there := self.server.redirects.get(name)) is not None:
            self._redirect(there if urlsplit(there).path else f"{there}{self.path}")
            return
        parts = unquote(urlsplit(self.path).path).strip("/").split("/")
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        if parts[:2] == ["api", "models"] and parts[4:5] == ["tree"]:
            self._hf_tree("/".join(parts[2:4]), "/".join(parts[5:]))
        elif parts[:2] == ["api", "models"]:
            self._hf_listing("/".join(parts[2:4]), "/".join(parts[5:]) or "main")
        elif parts[:3] == ["api", "v1", "models"] and parts[5:] == ["repo", "files"]:
            self._modelscope_listing("/".join(parts[3:5]), query.get("Revision", "master"))
        elif parts[:3] == ["api", "v1", "models"] and parts[5:] == ["repo"]:
            self._file("/".join(parts[3:5]), query["Revision"], query["FilePath"])
        elif parts[2:3] == ["resolve"]:
            self._file("/".join(parts[:2]), parts[3], "/".join(parts[4:]))
        else:
            self._fail(404, "EntryNotFound")

    def _repository(self, name: str, revision: str) -> Repository | None:
        """None: the reply is sent."""
        found = self.server.repositories.get(name)
        if found is None or (found.token and self.headers.get("authorization") != f"Bearer {found.token}"):
            self._fail(404 if self.path.startswith("/api/v1/") else 401, "RepoNotFound")
            return None
        if not found.commit_of(revision):
            self._fail(404, "RevisionNotFound")
            return None
        return found

    def _hf_listing(self, name: str, revision: str) -> None:
        if (found := self._repository(name, revision)) is None:
            return
        siblings = []
        for path, data in found.files.items():
            size = found.said_sizes.get(path, len(data))
            entry: dict[str, object] = {"rfilename": path, "size": size, "blobId": _git(data)}
            if len(data) >= LARGE:
                entry["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": size, "pointerSize": 130}
            siblings.append(entry)
        self._json({"id": name, "sha": found.commit_of(revision), "siblings": siblings})

    def _hf_tree(self, name: str, revision: str) -> None:
        """Answer the request of the library's `snapshot_download`."""
        if (found := self._repository(name, revision)) is None:
            return
        entries = []
        for path, data in found.files.items():
            entry: dict[str, object] = {"type": "file", "path": path, "size": len(data), "oid": _git(data)}
            if len(data) >= LARGE:
                entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
            entries.append(entry)
        self._json(entries)

    def _modelscope_listing(self, name: str, revision: str) -> None:
        if (found := self._repository(name, revision)) is None:
            return
        files = [
            {
                "Path": path,
                "Name": path.rpartition("/")[2],
                "Size": found.said_sizes.get(path, len(data)),
                "Sha256": hashlib.sha256(data).hexdigest(),
                "Type": "blob",
            }
            for path, data in found.files.items()
        ]
        self._json({"Code": 200, "Success": True, "Data": {"Files": files}})

    def _file(self, name: str, revision: str, path: str) -> None:
        if (found := self._repository(name, revision)) is None:
            return
        if path not in found.files:
            self._fail(404, "EntryNotFound")
            return
        data = self.server.damaged.get(path, found.files[path])
        start = self._start() if self.server.knows_ranges else 0
        self.send_response(206 if start or (self.server.knows_ranges and "range" in self.headers) else 200)
        self.send_header("content-length", str(len(data) - start))
        self.send_header("etag", f'"{hashlib.sha256(data).hexdigest() if len(data) >= LARGE else _git(data)}"')
        self.send_header("x-repo-commit", found.commit_of(revision))
        if self.server.knows_ranges and "range" in self.headers:
            self.send_header("content-range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        if self.command != "HEAD":
            self._send(path, data[start:])

    def _start(self) -> int:
        given = self.headers.get("range", "bytes=0-")
        return int(given.removeprefix("bytes=").partition("-")[0])

    def _send(self, path: str, data: bytes) -> None:
        if breaks := self.server.breaks.get(path):
            self.wfile.write(data[: breaks.pop(0)])
            self.close_connection = True
            return
        half = len(data) // 2
        self.wfile.write(data[:half])
        if len(data) >= LARGE:
            self.server.gate.wait()
        self.wfile.write(data[half:])

    def _json(self, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _redirect(self, location: str) -> None:
        self.send_response(302)
        self.send_header("location", location)
        self.send_header("content-length", "0")
        self.end_headers()

    def _fail(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("x-error-code", code)
        self.send_header("content-length", "0")
        self.end_headers()
