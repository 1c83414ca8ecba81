"""Pages for people who only have the address: `GET /` says what answers here, and `/docs` shows the OpenAPI document.

The files of Swagger UI are those of the package fastapi-swagger, which is not imported: that would load FastAPI.
"""

import asyncio
import html
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import msgspec

from msx_core.service_errors import ResourceNotFound
from msx_frontend import __version__
from msx_net.http.family import JSON, Headers, Reply, Route
from msx_net.http.request import Request

DOCS = "/docs"
PAGES = ("console", "playground")
"""Pages that a listener may have next to its description."""
PACKAGE, RESOURCES = "fastapi-swagger", "fastapi_swagger/resources"
TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".png": "image/png"}
HTML = "text/html; charset=utf-8"
TEXT: Headers = (("content-type", "text/plain; charset=utf-8"),)
FILES = ("swagger-ui-bundle.js", "swagger-ui.css", "favicon-32x32.png")
START = "start.js"
SECURITY: Headers = (
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
)

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="ui">Without JavaScript the description can be read at <a href="openapi.json">openapi.json</a>.</div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""
_START = b"""SwaggerUIBundle({
  url: new URL("openapi.json", document.baseURI).href,
  dom_id: "#ui",
  deepLinking: true,
  displayRequestDuration: true,
  persistAuthorization: false,
  tryItOutEnabled: true,
  validatorUrl: null,
});
"""
_WELCOME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
</head>
<body>
<h1>{title}</h1>
<p>{sentence}</p>
<ul>
{links}
</ul>
</body>
</html>
"""


def browser_routes(title: str, more: Sequence[str]) -> tuple[Route, ...]:
    """`title` names the listener's APIs; `more`: its other pages, of `PAGES`."""
    pages = _Pages(title, more)
    return (
        Route("GET", "/", pages.welcome, key=None, model="", summary="What answers here, and where it is described"),
        Route("GET", DOCS, pages.docs, key=None, model=""),
        Route("GET", f"{DOCS}/{{file}}", pages.file, key=None, model=""),
    )


class _Pages:
    def __init__(self, title: str, more: Sequence[str]) -> None:
        self._title = title
        self._links = {"docs": "docs", "openapi": "openapi.json", **{name: name for name in more}}

    async def welcome(self, request: Request) -> Reply:
        """HTML for browsers, JSON for others, and the sentence by which Ollama's clients know a server."""
        if request.call.header(b"user-agent").lower().startswith("ollama"):
            return Reply(b"Ollama is running", headers=TEXT)
        sentence = f"MSX {__version__} serves models of MindSpore here: {self._title}."
        if "text/html" not in (request.call.header(b"accept") or ""):
            places = {name: f"/{path}" for name, path in self._links.items()}
            return Reply(msgspec.json.encode({"message": sentence, **places}), 200, JSON)
        items = [f'<li><a href="{path}">{html.escape(_NAMES[name])}</a></li>' for name, path in self._links.items()]
        page = _WELCOME.format(title=html.escape(self._title), sentence=html.escape(sentence), links="\n".join(items))
        return Reply(page.encode(), 200, (("content-type", HTML), *SECURITY))

    async def docs(self, request: Request) -> Reply:
        page = _PAGE.format(title=html.escape(self._title))
        return Reply(page.encode(), 200, (("content-type", HTML), *SECURITY))

    async def file(self, request: Request) -> Reply:
        """Raises ResourceNotFound."""
        name = request.names["file"]
        content = _START if name == START else await asyncio.to_thread(_resource, name)
        headers = (("content-type", TYPES[Path(name).suffix]), ("cache-control", "public, max-age=3600"), *SECURITY)
        return Reply(content, 200, headers)


_NAMES = {
    "docs": "Each route, and a form to try it",
    "openapi": "The same as an OpenAPI document",
    "console": "The console",
    "playground": "The playground: a form for each model",
}


def _resource(name: str) -> bytes:
    if name not in FILES:
        raise ResourceNotFound(f"{DOCS} has no file {name[:80]}.")
    try:
        return Path(str(distribution(PACKAGE).locate_file(f"{RESOURCES}/{name}"))).read_bytes()
    except (PackageNotFoundError, OSError):
        raise ResourceNotFound(f"The package {PACKAGE} is not installed here, which has {name}.") from None
