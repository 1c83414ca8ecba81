"""`python -m msx_ray.driver`: started by the server, ends when its socket does."""

import argparse
import os
import signal
import socket


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--server", required=True)
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.set_inheritable(options.fd, False)
    from msx_ray.driver.connection import RayConnection
    from msx_ray.driver.driver import Driver

    code = Driver(socket.socket(fileno=options.fd), RayConnection(options.address), options.server).run()
    os._exit(code)  # Ray's own end waits for the cluster, which may be what is gone


if __name__ == "__main__":
    main()
