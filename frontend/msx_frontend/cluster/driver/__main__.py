"""`python -m msx_frontend.cluster.driver`: started by the server, ends with it."""

from __future__ import annotations

import argparse
import os
import signal
import socket

from msx_sdk._internal.orphan import die_with_parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--server", required=True)
    options = parser.parse_args()
    die_with_parent(options.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.set_inheritable(options.fd, False)
    from msx_frontend.cluster.driver.connection import Connection
    from msx_frontend.cluster.driver.driver import Driver

    Driver(socket.socket(fileno=options.fd), Connection(options.address), options.server).run()
    os._exit(0)  # Ray's own end waits for the cluster, which may be what is gone


if __name__ == "__main__":
    main()
