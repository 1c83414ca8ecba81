"""Pages for a browser, and their static files: standards-only JavaScript and CSS, served as they are in the wheel.

The address of a static file has a digest of all of them: browsers keep the file for good, and ask anew only for the
page. Nothing of a page comes from another host, no script or style stands in the page itself, and no other page may
have it in a frame.
"""

from __future__ import annotations

import asyncio
import hashlib
import html as html_text
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from msx_core.service_errors import ResourceNotFound
from msx_net.http.family import Reply, Route
from msx_net.http.request import Request

FOLDER = Path(__file__).parent / "static"

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Content types of static files, by suffix."""

SECURITY = (
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-frame-options", "DENY"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
)
FOR_GOOD = ("cache-control", "public, max-age=31536000, immutable")
ASKED_ANEW = ("cache-control", "no-cache")


class StaticFiles:
    """The files below a folder. Which there are is read once, at the first request; they are read at each."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder

    @cached_property
    def _paths(self) -> dict[str, Path]:
        found = (path for path in self._folder.rglob("*") if path.suffix in TYPES and path.is_file())
        return {path.relative_to(self._folder).as_posix(): path for path in sorted(found)}

    @cached_property
    def digest(self) -> str:
        """Hash of the names and contents of all files."""
        whole = hashlib.blake2b(digest_size=10)
        for name, path in self._paths.items():
            data = path.read_bytes()
            whole.update(f"{name} {len(data)} ".encode() + data)
        return whole.hexdigest()

    def modules(self, *folders: str) -> list[str]:
        """Names of the JavaScript modules of these folders."""
        return [name for name in self._paths if name.endswith(".js") and name.split("/")[0] in folders]

    def read(self, name: str) -> bytes:
        """Raises ResourceNotFound."""
        path = self._paths.get(name)
        if path is None:
            raise ResourceNotFound(f"The console has no file {name[:80]}.")
        return path.read_bytes()


def page_routes(
    files: StaticFiles, base: str, page: str, *, keys: bool = True, other: Callable[[], str] = str
) -> tuple[Route, ...]:
    """`base` is the path of the page, such as "/console"; `page` names its HTML. In it `{static}` stands for the folder
    of the static files, `{modules}` for links by which a browser asks for all modules at once, `{keys}` for "on" or
    "off" (whether the server asks for keys), and `{console}` for the address of the console's listener, which `other`
    says."""

    async def show(request: Request) -> Reply:
        html, digest = await asyncio.to_thread(_read, files, page)
        console = html_text.escape(other())
        tag = f'W/"{digest}-{"on" if keys else "off"}-{console}"'
        headers = (("content-type", TYPES[".html"]), ASKED_ANEW, ("etag", tag), *SECURITY)
        if request.call.header(b"if-none-match") == tag:
            return Reply(b"", 304, headers)
        filled = html.replace(b"{static}", f"{base}/static/{digest}".encode())
        filled = filled.replace(b"{console}", console.encode())
        return Reply(filled.replace(b"{keys}", b"on" if keys else b"off"), 200, headers)

    async def static(request: Request) -> Reply:
        """A file under another digest is that of another version of the server: its page has to be loaded again."""
        name = request.names["file"]
        digest = await asyncio.to_thread(lambda: files.digest)
        if request.names["digest"] != digest:
            raise ResourceNotFound(f"This server has other files of the console now: load {base} again.")
        data = await asyncio.to_thread(files.read, name)
        return Reply(data, 200, (("content-type", TYPES[Path(name).suffix]), FOR_GOOD, *SECURITY))

    return (
        Route("GET", base, show, key=None, model=""),
        Route("GET", f"{base}/static/{{digest}}/{{file:path}}", static, key=None, model=""),
    )


def _preloads(files: StaticFiles, page: str) -> bytes:
    """Links to all modules of a page. Without them each level of imports is a round trip."""
    names = files.modules("shared", Path(page).stem)
    return "\n    ".join(f'<link rel="modulepreload" href="{{static}}/{name}">' for name in names).encode()


def _read(files: StaticFiles, page: str) -> tuple[bytes, str]:
    return files.read(page).replace(b"{modules}", _preloads(files, page)), files.digest
