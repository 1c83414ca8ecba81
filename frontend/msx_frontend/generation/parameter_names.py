"""Messages about a parameter begin with its name in MSX. Here it becomes the name that the client has sent."""

import re
from collections.abc import Mapping

from msx_core.service_errors import BadRequest, HandlerFailed, ServiceError

Names = Mapping[str, str]
"""The client's names by the beginning of ours, a regular expression: `{"prompt": "messages"}`."""

_NAMED = re.compile(r"([a-z_][A-Za-z0-9_.$\[\]-]*): ")


def parameter_of(message: str) -> str | None:
    """The name with which a message begins."""
    named = _NAMED.match(message)
    return named[1] if named else None


def renamed(error: ServiceError, names: Names) -> ServiceError:
    """The same error with the client's name of the parameter."""
    parameter = parameter_of(error.message) if isinstance(error, (BadRequest, HandlerFailed)) else None
    if parameter is not None:
        error.message = f"{client_name(parameter, names)}{error.message[len(parameter) :]}"
    return error


def client_name(parameter: str, names: Names) -> str:
    for ours, theirs in names.items():
        if match := re.match(rf"(?:{ours})(?![a-z0-9_])", parameter):
            return match.expand(theirs) + parameter[match.end() :]
    return parameter
