"""`python -m benchmarks.utilisation.marked_server FILE OPTIONS`: msx-serve with these options.

At its end the instants at which requests reached its parts are in the file, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.handlers.marks import Marks, mark
from msx_frontend.cli.main import main as msx_serve
from msx_frontend.models.registry import Registry
from msx_frontend.queueing.dispatcher import Dispatcher
from msx_frontend.workers.batch_runner import BatchRunner
from msx_net.http.v1.connection import Http1Connection
from msx_net.http.v1.direct_reply import Http1Reply
from msx_protocol.channel import Channel


def main() -> None:
    file, marks = Path(sys.argv.pop(1)), Marks()
    mark(marks, Http1Connection, "data_received", begin="received")
    mark(marks, Registry, "submit", begin="parsed")
    mark(marks, Dispatcher, "submit", begin="routed")
    mark(marks, BatchRunner, "predict", begin="batched")
    mark(marks, Channel, "write", end="sent")
    mark(marks, Channel, "buffer_updated", begin="back")
    mark(marks, Http1Reply, "answer", begin="answered", end="written")
    try:
        msx_serve()
    finally:
        file.write_text(json.dumps(marks))


if __name__ == "__main__":
    main()
