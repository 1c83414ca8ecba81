"""The description of a running server, as other processes read it."""

import contextlib
from pathlib import Path

import msgspec
import psutil

from msx_frontend.config.state_folder import BESIDE_MODELS
from msx_frontend.supervision.program import runs_supervisor


class InstanceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a running server, in `server.json` of its state folder."""

    pid: int
    """The process that a signal ends: the supervisor, where there is one."""
    frontend: int | None = None
    """The process that answers; None from older servers."""
    model_store: str
    state_dir: str = ""
    """The state folder. Older servers write "": theirs is `.msx` in the model store."""
    inference: str
    management: str
    metrics: str | None
    grpc_inference: str
    grpc_management: str
    certificate: str | None = None
    """Certificate in PEM, if listeners use TLS. Commands that ask this server trust only this certificate."""
    certificate_file: str | None = None
    """Its file, if it is one in PEM; None from older servers."""
    key_file: str | None
    keeps_keys: bool = True
    """The next server takes the keys of `key_file` (keep_tokens)."""
    temporary_folder: str | None = None
    """The folder of its temporary files, if a variable names it."""
    status_socket: str | None = None
    """The socket of `--status`; None if the state folder cannot have a socket."""
    log_file: str | None
    """The file of stdout and stderr, if they are redirected to one."""
    log_files: list[str] | None = None
    """The files of the log; None from older servers, which write it to `log_file`."""
    log_folder: str | None = None
    """The folder of TorchServe's log files, if they are written."""
    started_at: float
    drain_timeout: float = 30.0
    """Seconds."""
    not_loaded: list[str] = []
    """Why models of the start could not be loaded."""
    configuration: str = ""
    """The file of its settings, or a text which says that none was read."""
    state: str = ""
    """The file in which it remembers its models; without one, a text that names the folder of its caches."""
    models: str = ""
    """The models of its start: given and remembered ones."""
    hint: str = ""
    script: str = ""
    """The start script whose server it is; its listeners may have no address."""
    endpoints: list[str] = []
    """Addresses that the script has opened."""

    @property
    def state_folder(self) -> Path:
        return Path(self.state_dir or Path(self.model_store) / BESIDE_MODELS)

    @property
    def logs(self) -> list[str]:
        if self.log_files is not None:
            return self.log_files
        return [self.log_file] if self.log_file else []

    @property
    def is_supervised(self) -> bool:
        return self.frontend not in (None, self.pid)

    @property
    def lives(self) -> bool:
        """Its process runs. One that began later is another one, and so is process 1 of another container."""
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self.pid)
            if process.create_time() <= self.started_at and process.status() != psutil.STATUS_ZOMBIE:
                return not self.is_supervised or runs_supervisor(process.cmdline())
        return False

    @property
    def starts_another(self) -> bool:
        """There is a supervisor, which starts another frontend where this one has ended."""
        return self.is_supervised and self.lives

    def places(self) -> dict[str, str]:
        """Its files and addresses, as texts for the user."""
        read = {"config": self.configuration, "state": self.state, "models": self.models}
        found = {**{name: text for name, text in read.items() if text}, **self._listeners()}
        if self.logs:
            found["log"] = ", ".join(self.logs)
        return {**found, "log files": self.log_folder} if self.log_folder else found

    def _listeners(self) -> dict[str, str]:
        if self.script:
            own = [self.inference, self.management, self.metrics, self.grpc_inference, self.grpc_management]
            more = [address for address in own if address]
            return {"script": self.script, "endpoints": ", ".join([*self.endpoints, *more]) or "none"}
        return {
            "inference": self.inference,
            "management": self.management,
            "metrics": self.metrics or "off",
            "gRPC": f"{self.grpc_inference}, management {self.grpc_management}",
            "tokens": self.key_file or "off (--disable-token-auth)",
        }

    def summary(self) -> str:
        return ", ".join(f"{name} {place}" for name, place in self.places().items())
