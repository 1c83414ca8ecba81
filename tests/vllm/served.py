"""Models that a real server serves by the real vLLM, in the interpreter of the long lane."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from tests.e2e.server import RunningServer, run_server

PYTHON = os.environ.get("MSX_VLLM_PYTHON", "")
NEEDED = (
    "MSX_VLLM_PYTHON names no interpreter with vLLM and msx-serve: `scripts/test-all vllm` makes one, and so does "
    "scripts/vllm-env (docs/interpreters.md has others)"
)
SMALL = {"enforce-eager": True, "dtype": "float32", "kv-cache-memory-bytes": "64M"}
"""Members of `vllm:` for small models: nothing is compiled, and little memory is taken."""
CACHES = {
    variable: str(Path(PYTHON).parent.parent / "caches" / name)
    for variable, name in (("TORCHINDUCTOR_CACHE_DIR", "inductor"), ("VLLM_CACHE_ROOT", "vllm"))
}
"""Or each engine compiles the same functions, and looks at the same classes of models."""
ENV = {"VLLM_CPU_OMP_THREADS_BIND": "nobind", **CACHES}
"""Without the first, the engines of all servers and tests of this machine share its first core."""
LOAD = 500.0
"""Seconds in which they are ready on a busy machine."""


def pack_vllm(store: Path, name: str, folder: Path, keys: str = "", **members: Any) -> Path:
    """An archive of a folder in Hugging Face's layout; `members` are others of `vllm:` than those of `SMALL`,
    `keys` the rest of its model-config.yaml."""
    yaml = store / f"{name}.yaml"
    own = {"python": "vllm", "env": ENV, "vllm": SMALL | members}
    yaml.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in own.items()) + keys)
    return pack(
        PackOptions(
            model_name=name,
            version="1.0",
            handler="vllm",
            config_file=str(yaml),
            extra_files=str(folder),
            export_path=store,
        )
    )


@contextmanager
def run_vllm(folder: Path, *archives: Path, properties: str = "", **options: Any) -> Iterator[RunningServer]:
    """A server with these archives of `folder/store`; when it begins they are ready."""
    names = [archive.name for archive in archives]
    properties = f"pythons=vllm={PYTHON}\n{properties}"
    with run_server(folder, "--models", *names, properties=properties, ready=False, **options) as server:
        server.management.timeout = LOAD  # calls wait for workers
        server.wait_ready(LOAD)
        yield server
