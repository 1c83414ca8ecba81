"""Names with which another package starts this server in a process of its own, as a start script's does.

Provisional: they may change in any minor release. Import it after `prepare_process`: it imports the whole server.
"""

from msx_frontend.archives.fetched import fetched
from msx_frontend.assembly.devices import choose_devices
from msx_frontend.assembly.lifecycle import Lifecycle
from msx_frontend.assembly.server import LISTENER_LIMIT, UNFINISHED, Server, start_server
from msx_frontend.config import ServerConfig
from msx_frontend.config.connections import connection_limits
from msx_frontend.config.load import GivenSettings, load_settings
from msx_frontend.config.state_folder import state_folder
from msx_frontend.config.surroundings import log_location, settle_logs
from msx_frontend.config.tls_listeners import GRPC, HTTP
from msx_frontend.logs.file_mode import file_mode, set_mode
from msx_frontend.logs.output import HumanFormatter, LogOutput, TerminalFormatter, set_up_logging
from msx_frontend.models.management import Management
from msx_frontend.models.registration import Registration
from msx_frontend.models.versions.model_version import ModelVersion
from msx_frontend.workers.group_end import GroupEnd
from msx_frontend.workers.replica import Replica, ReplicaState

__all__ = [
    "GRPC",
    "HTTP",
    "LISTENER_LIMIT",
    "UNFINISHED",
    "GivenSettings",
    "GroupEnd",
    "HumanFormatter",
    "Lifecycle",
    "LogOutput",
    "Management",
    "ModelVersion",
    "Registration",
    "Replica",
    "ReplicaState",
    "Server",
    "ServerConfig",
    "TerminalFormatter",
    "choose_devices",
    "connection_limits",
    "fetched",
    "file_mode",
    "load_settings",
    "log_location",
    "set_mode",
    "set_up_logging",
    "settle_logs",
    "start_server",
    "state_folder",
]
