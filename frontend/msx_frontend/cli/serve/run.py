"""Serves one path, or one model of a hub, until the server ends."""

import os
from pathlib import Path

import click

from msx_archiver.errors import ArchiveError
from msx_core.private_folder import PATH_PREFIX, PrivateFolder
from msx_core.service_errors import ServiceError
from msx_core.start_errors import StartError
from msx_frontend.cli.options import Options
from msx_frontend.cli.serve.session import Serving, Session


def serve(options: Options, serving: Serving) -> int:
    """Returns the exit code when the server has ended."""
    from msx_frontend.cli.launch import run_in_foreground

    private = PrivateFolder(PATH_PREFIX)
    try:
        try:
            session = _session(options, serving, Path(private.path))
            session.make()
            settled = session.options(options)
        except (StartError, ArchiveError, OSError, ServiceError) as error:
            click.echo(str(error), err=True)
            return 1
        for place in ("LOG_LOCATION", "METRICS_LOCATION"):  # TorchServe's log files end with the session
            os.environ.setdefault(place, str(Path(private.path, "logs")))
        return run_in_foreground(settled, session.run) or session.code
    finally:
        private.remove()


def _session(options: Options, serving: Serving, folder: Path) -> Session:
    if not serving.url:
        return Session(serving, folder)
    from msx_frontend.cli.serve.hub_session import HubSession

    return HubSession(options, serving, folder)
