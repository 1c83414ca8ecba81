"""Cost of the import of the client before the first call."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIBRARIES = {
    "httpx",
    "grpc",
    "numpy",
    "google.protobuf",
    "msgspec",
    "mindspore",
    "msx_frontend",
    "msx_ray",
    "msx_torchserve",
    "msx_mindspore_serving",
    "msx_backend",
    "msx_llm",
    "msx_net",
    "msx_core",
    "msx_sdk",
}


@pytest.mark.parametrize(
    "code",
    [
        "import msx_client",
        "from msx_client import AsyncClient, Client, MsxError",
        "from msx_client import Client; Client('http://127.0.0.1:8080').close()",
        "from msx_client import AsyncClient; AsyncClient('grpc://127.0.0.1:7070', key='x')",
    ],
)
def test_no_library_is_loaded_before_the_first_call(code: str) -> None:
    command = [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"]
    loaded = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert not loaded & LIBRARIES


def test_names() -> None:
    import msx_client

    for name in msx_client.__all__:
        assert getattr(msx_client, name).__name__ == name
    with pytest.raises(AttributeError, match="nothing_such"):
        msx_client.nothing_such  # noqa: B018
