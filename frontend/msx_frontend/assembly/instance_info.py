"""The description of a running server, for `--status`, `--stop`, and the command that started it."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from msx_frontend.assembly.context import ServerContext
from msx_frontend.assembly.info import InstanceInfo
from msx_frontend.assembly.pid_file import temporary_folder
from msx_frontend.models.startup.summary import StartSummary


@dataclass(frozen=True)
class Addresses:
    """Where the server listens."""

    inference: str
    management: str
    metrics: str | None
    grpc_inference: str
    grpc_management: str


def instance_info(
    context: ServerContext, account: StartSummary, not_loaded: list[str], addresses: Addresses, status: Path | None
) -> InstanceInfo:
    """`not_loaded`: why models could not be loaded. `status` is the socket of `--status`."""
    config, folder, output, tokens = context.config, context.folder, context.output, context.keys.tokens
    log_file = os.environ.get("MSX_LOG_FILE")
    return InstanceInfo(
        pid=os.getpid() if context.supervisor is None else context.supervisor.pid,
        frontend=os.getpid(),
        model_store=str(folder.model_store),
        state_dir=str(folder.path),
        inference=addresses.inference,
        management=addresses.management,
        metrics=addresses.metrics,
        grpc_inference=addresses.grpc_inference,
        grpc_management=addresses.grpc_management,
        certificate=None if context.tls is None else context.tls.identity.chain.decode(),
        certificate_file=_certificate_file(context),
        key_file=None if tokens is None else str(tokens.path),
        keeps_keys=config.keep_tokens,
        temporary_folder=temporary_folder(os.environ),
        status_socket=None if status is None else str(status),
        log_file=log_file,
        log_files=output.files(log_file),
        log_folder=str(Path(output.access_file.baseFilename).parent) if output.access_file else None,
        started_at=time.time(),
        drain_timeout=config.drain_timeout,
        not_loaded=not_loaded,
        configuration=str(context.file.absolute()) if context.file else "none: flags and defaults",
        state=str(folder.database) if config.snapshots else f"off (--ncs); caches in {folder.path}",
        models=account.text(),
        hint=context.hint,
        script=context.script,
    )


def _certificate_file(context: ServerContext) -> str | None:
    """None for a keystore, which curl does not read."""
    if context.tls is None or context.config.keystore is not None or (file := context.config.certificate_file) is None:
        return None
    return str(file.absolute())
