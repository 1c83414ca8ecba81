"""Makes the fixtures of a release, of its own commit: `python -m tests.releases.make` writes tests/releases/VERSION."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from msx_frontend import __version__
from tests.e2e.server import run_server
from tests.releases.arrangement import CONFIGURATION, arrange, pack_archives, served


def main() -> None:
    to = Path(__file__).parent / __version__
    to.mkdir()
    with TemporaryDirectory() as name:
        folder = Path(name)
        pack_archives(folder, {**os.environ})
        with run_server(folder, properties=CONFIGURATION) as server:
            arrange(server)
            server.wait_serving()
            (to / "served.json").write_text(json.dumps(served(server), indent=2) + "\n")
        (to / "config.properties").write_text(CONFIGURATION)
        snapshot = max((folder / "logs" / "config").iterdir())
        shutil.copy(snapshot, to / "snapshot.cfg")
        shutil.copy(folder / "store" / ".msx" / "state.db", to)
        shutil.copytree(folder / "store", to / "store", ignore=shutil.ignore_patterns(".msx"))


if __name__ == "__main__":
    main()
