"""Models whose stages run in processes of their own."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from tests.e2e.server import SERVICES, new_store, run_server

pytestmark = pytest.mark.e2e

CHAIN = """
stages:
  one: {handler: stages.py:One, device: none}
  two: {handler: stages.py:Two, workers: 2, batchSize: 4, env: [{PLACE: first}, {PLACE: second}]}
  three: {handler: "stages:Three"}
"""


def pack_stages(store: Path, model: str, config: str) -> Path:
    file = store / f"{model}.yaml"
    file.write_text(textwrap.dedent(config))
    return pack(
        PackOptions(
            model_name=model,
            config_file=str(file),
            extra_files=str(SERVICES / "stages.py"),
            export_path=store,
            force=True,
        )
    )


def test_chain(tmp_path: Path) -> None:
    archive = pack_stages(new_store(tmp_path), "chain", CHAIN)
    with run_server(tmp_path) as server:
        server.register(archive)
        reply = server.predict("chain", "x", headers={"content-type": "text/plain"})
        assert (reply.status_code, reply.text) == (200, "three(two(one(x)))")
