"""Pages and static files of the console: what browsers are told of them, and what is in them."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from msx_frontend.apis.console.family import console
from msx_frontend.apis.console.pages import FOLDER, TYPES, StaticFiles
from tests.loops import run
from tests.net.http.client import Exchange, FakeAccessLog, ask
from tests.net.http.exchanges import exchange_of

SOURCES = sorted(path for path in FOLDER.rglob("*") if path.is_file())


def get(path: str, files: StaticFiles | None = None, *, keys: bool = True, **headers: str) -> Exchange:
    shown: Any = SimpleNamespace(files=files or StaticFiles(), keys=keys)
    edge = exchange_of(console(shown), log=FakeAccessLog())
    return run(ask(edge, "GET", path, b"", **headers))


def test_the_page_asks_for_its_files_by_their_digest() -> None:
    page = get("/console")
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-cache"
    named = re.findall(r'(?:src|href)="([^"]+)"', page.body.decode())
    assert named
    for path in named:
        assert path.startswith(f"/console/static/{StaticFiles().digest}/")
        found = get(path)
        assert found.status == 200
        assert found.headers["cache-control"] == "public, max-age=31536000, immutable"


def test_a_browser_asks_for_all_modules_at_once() -> None:
    """On a slow link each level of imports would be a round trip."""
    page = get("/console").body.decode()
    asked = re.findall(r'rel="modulepreload" href="/console/static/\w+/([^"]+)"', page)
    used = {
        path.relative_to(FOLDER).as_posix()
        for folder in ("shared", "console")
        for path in FOLDER.glob(f"{folder}/*.js")
    }
    assert sorted(asked) == sorted(used)


def test_the_page_says_whether_the_server_asks_for_keys() -> None:
    on, off = get("/console"), get("/console", keys=False)
    assert b'data-keys="on"' in on.body
    assert b'data-keys="off"' in off.body
    assert on.headers["etag"] != off.headers["etag"]


def test_a_page_that_has_not_changed_is_not_sent_again() -> None:
    again = get("/console", if_none_match=get("/console").headers["etag"])
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize("path", ["/console", f"/console/static/{StaticFiles().digest}/shared/api.js"])
def test_browsers_keep_other_sites_out(path: str) -> None:
    headers = get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("name", ["../pages.py", "shared/none.js", "shared", "%2e%2e/pages.py", ""])
def test_nothing_else_of_the_server_is_a_static_file(name: str) -> None:
    assert get(f"/console/static/{StaticFiles().digest}/{name}").status == 404


def test_a_file_of_another_version_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("1")
    first = StaticFiles(tmp_path).digest
    (tmp_path / "a.js").write_text("2")
    files = StaticFiles(tmp_path)
    assert files.digest != first
    missing = get(f"/console/static/{first}/a.js", files)
    assert missing.status == 404
    assert "load /console again" in missing.json["message"]
    assert get(f"/console/static/{files.digest}/a.js", files).body == b"2"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_sources_are_small_and_ask_no_other_host(path: Path) -> None:
    text = path.read_text()
    assert path.suffix in TYPES
    assert len(text.splitlines()) <= 250
    assert not re.findall(r"(?:https?:)?//(?!www\.w3\.org/)[\w-]+\.[\w.-]+", text)
    assert "innerHTML" not in text
    assert not re.search(r"localStorage|document\.cookie|\beval\(|new Function", text)
    if path.suffix == ".html":
        assert not re.search(r"<script>|<style|style=|\son\w+=", text)


@pytest.mark.parametrize("path", [one for one in SOURCES if one.suffix == ".js"], ids=lambda path: path.name)
def test_modules_import_modules_that_are_there(path: Path) -> None:
    for name in re.findall(r'(?:from|import) "([^"]+)"', path.read_text()):
        assert name.startswith((".", "/")), name
        assert (path.parent / name).resolve().is_file(), name
