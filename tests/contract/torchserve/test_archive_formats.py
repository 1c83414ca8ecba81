"""Archives that torch-model-archiver made are served as they are; what is not an archive is refused.

contract#archives
"""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.contract.torchserve.setup import Setup, register
from tests.contract.torchserve.shapes import assert_error, assert_status
from tests.e2e.server import RunningServer
from tests.torch_archiver import FORMATS, torch_archive

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("nothing_registered")]

SERVER = Setup(properties="default_service_handler=fallback.py:answer\n")

TELL = """
import json, os

def handle(data, context):
    return [json.dumps({"manifest": context.manifest, "config": context.model_yaml_config,
                        "file": open("data/extra.txt").read()})] * len(data)
"""
ECHO = "def handle(data, context):\n    return [row['body'] for row in data]\n"
FILES: dict[str, bytes | str] = {"h.py": TELL, "data/extra.txt": "extra", "model.pt": bytes(1000), "c.yaml": "a: 1\n"}


def refused(server: RunningServer, url: str, message: str, **parameters: Any) -> None:
    """400 InvalidModelException, and nothing is left of it."""
    assert_error(register(server, url, **parameters), 400, "InvalidModelException", message, exact=False)
    assert server.management.get("/models").json()["models"] == []


@pytest.mark.parametrize("archive_format", FORMATS)
def test_every_format(server: RunningServer, archive_format: str) -> None:
    """Default, zip-store, tgz with the model's name before all members, a folder."""
    model = {"serializedFile": "model.pt", "configFile": "c.yaml", "extensions": "", "sourceVocab": "vocab.pt"}
    path = torch_archive(server.store, f"f-{archive_format}", FILES, archive_format=archive_format, **model)
    name = f"f-{archive_format}"
    assert_status(register(server, path.name), 200, f'Model "{name}" Version: 1.0 registered with 1 initial workers')
    told = server.predict(name).json()
    assert told["file"] == "extra"
    assert told["config"] == {"a": 1}
    assert told["manifest"]["model"]["sourceVocab"] == "vocab.pt"
    assert told["manifest"]["archiverVersion"] == "0.12.0"
    described = server.describe(name)
    assert (described["modelUrl"], described["runtime"]) == (path.name, "python")


@pytest.mark.parametrize(
    ("handler", "files"),
    [
        ("h.py", {"h.py": ECHO}),
        ("h", {"h.py": ECHO}),
        ("h:answer", {"h.py": ECHO.replace("handle", "answer")}),
        ("h.py:answer", {"h.py": ECHO.replace("handle", "answer")}),
        ("/home/somebody/h.py", {"h.py": ECHO}),
        ("/home/somebody/h:answer", {"h.py": ECHO.replace("handle", "answer")}),
        ("sub/h.py", {"h.py": ECHO}),
        ("sub/h.py", {"sub/h.py": ECHO}),
    ],
)
def test_handlers(server: RunningServer, handler: str, files: dict[str, bytes | str]) -> None:
    """A file with and without suffix, a function of it, a path of which only the base name counts.

    contract#handlers
    """
    path = torch_archive(server.store, "handler", files, handler=handler)
    assert register(server, path.name).status_code == 200
    assert server.predict("handler", b"hello").content == b"hello"


def test_a_handler_outside_of_the_archive_is_not_run(server: RunningServer) -> None:
    """contract#security: a path in the manifest names a file of the archive, or nothing."""
    outside = server.folder / "outside.py"
    outside.write_text(ECHO)
    path = torch_archive(server.store, "outside", {"h.py": ECHO}, handler=str(outside))
    message = "Failed to start workers for model outside version: 1.0"
    assert_error(register(server, path.name), 500, "InternalServerException", message, exact=False)


@pytest.mark.parametrize(
    ("parameters", "handler"),
    [({}, "fallback.py:answer"), ({"handler": "h.py"}, "h.py")],
)
def test_default_service_handler(server: RunningServer, parameters: dict[str, str], handler: str) -> None:
    """contract#configproperties: the handler of archives that do not name one; the registration's beats it."""
    answer = "def answer(data, context):\n    return [b'fallback' for _ in data]\n"
    path = torch_archive(server.store, "bare", {"h.py": ECHO, "fallback.py": answer}, handler=None)
    assert register(server, path.name, **parameters).status_code == 200
    assert server.predict("bare", b"h.py").content == (b"fallback" if handler != "h.py" else b"h.py")


def test_a_version_that_is_missing_is_1_0(server: RunningServer) -> None:
    path = torch_archive(server.store, "versionless", {"h.py": ECHO}, modelVersion=None)
    register(server, path.name)
    assert server.describe("versionless")["modelVersion"] == "1.0"


def test_a_name_that_is_missing(server: RunningServer) -> None:
    """contract#management: "Model name is not defined.", unless the call defines it."""
    path = torch_archive(server.store, "nameless", {"h.py": ECHO}, modelName=None)
    refused(server, path.name, "Model name is not defined.")
    assert register(server, path.name, model_name="given").status_code == 200
    assert server.predict("given", b"x").content == b"x"


@pytest.mark.parametrize("runtime", ["python", "python3", "LSP"])
def test_runtimes(server: RunningServer, runtime: str) -> None:
    """The manifest's, and the registration's over it."""
    path = torch_archive(server.store, "timed", {"h.py": ECHO}, runtime=runtime)
    assert register(server, path.name).status_code == 200
    assert server.describe("timed")["runtime"] == runtime
    server.management.delete("/models/timed")
    assert register(server, path.name, runtime="python3").status_code == 200
    assert server.describe("timed")["runtime"] == "python3"


def test_a_library_of_runtime_lsp_fails_to_load(server: RunningServer) -> None:
    """There are no C++ workers: the registration is taken, and its workers say what is missing."""
    path = torch_archive(server.store, "native", {"libh.so": b"\x7fELF"}, runtime="LSP", handler="libh:Handler")
    reply = register(server, path.name)
    message = "Failed to start workers for model native version: 1.0"
    assert_error(reply, 500, "InternalServerException", message, exact=False)
    assert "libh" in reply.json()["message"]


def test_a_folder_with_only_a_folder_in_it(server: RunningServer) -> None:
    """As SageMaker mounts them."""
    (server.store / "mounted").mkdir()
    torch_archive(server.store / "mounted", "only", {"h.py": ECHO}, archive_format="no-archive")
    assert register(server, "mounted").status_code == 200
    assert server.predict("only", b"x").content == b"x"


def test_a_folder_that_was_packed_before(server: RunningServer) -> None:
    """The manifest is always last; the one of a folder among --extra-files comes before it, and does not count."""
    path = torch_archive(server.store, "again", {"h.py": ECHO})
    with zipfile.ZipFile(path) as archive:
        data = archive.read("MAR-INF/MANIFEST.json")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("MAR-INF/MANIFEST.json", data.replace(b"again", b"older"))
        archive.writestr("h.py", ECHO)
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("MAR-INF/MANIFEST.json", data)
    assert register(server, path.name).status_code == 200
    assert server.predict("again", b"x").content == b"x"
    server.management.delete("/models/again")
    with tarfile.open(server.store / "again.tar.gz", "w:gz") as tar:
        for name, content in {"h.py": ECHO.encode(), "MAR-INF/MANIFEST.json": data.replace(b"again", b"older")}.items():
            _add(tar, f"again/{name}", content)
        _add(tar, "again/MAR-INF/MANIFEST.json", data)
    assert register(server, "again.tar.gz").status_code == 200
    assert server.predict("again", b"x").content == b"x"


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


@pytest.mark.parametrize("given", [{}, {"model_name": "named"}])
def test_what_is_not_an_archive_is_never_registered(server: RunningServer, given: dict[str, str]) -> None:
    """TorchServe registers it when the call names the model; here it is refused."""
    (server.store / "text.mar").write_text("This is no archive.")
    (server.store / "empty").mkdir(exist_ok=True)
    with zipfile.ZipFile(server.store / "bare.mar", "w") as archive:
        archive.writestr("h.py", ECHO)
    for url in ("text.mar", "bare.mar", "empty"):
        path = server.store / url
        refused(server, url, f"{path} is not a model archive: ", **given)


@pytest.mark.parametrize("name", ["base_handler", "text_classifier", "image_classifier", "object_detector"])
def test_handlers_of_torchserve_are_let_through(server: RunningServer, name: str) -> None:
    """Registered as any other; whether it runs is decided when a worker loads it."""
    path = torch_archive(server.store, "builtin", {"model.pt": b""}, handler=name, serializedFile="model.pt")
    reply = server.management.post("/models", params={"url": path.name})
    head = 'Model "builtin" Version: 1.0 registered with 0 initial workers. Use scale workers API to add workers'
    assert_status(reply, 200, f"{head} for the model.")


def test_old_keys_of_a_manifest(server: RunningServer) -> None:
    """Archivers before 0.2 wrote more keys; they are not read."""
    path = torch_archive(server.store, "old", {"h.py": ECHO})
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("MAR-INF/MANIFEST.json"))
    manifest |= {"specificationVersion": "1.0", "implementationVersion": "1.0", "modelServerVersion": "1.0"}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("h.py", ECHO)
        archive.writestr("MAR-INF/MANIFEST.json", json.dumps(manifest))
    assert register(server, path.name).status_code == 200
    assert server.predict("old", b"x").content == b"x"
    assert Path(path).exists()
