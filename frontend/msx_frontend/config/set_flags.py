"""`--set KEY=VALUE`: any key of config.properties on the command line, where it beats the file."""

from collections.abc import Sequence

from msx_frontend.config.keys import ALIASES, WITHOUT_MEANING
from msx_frontend.config.meant import meant
from msx_frontend.config.server_config import ServerConfig, ServerConfigError

_FIELDS = frozenset(ServerConfig.__struct_fields__)
FLAG = "--set"


def values_of_flags(given: Sequence[str]) -> dict[str, str]:
    """Fields of ServerConfig and their texts; of a key that is given twice, the last.

    A key that is not known is refused, unlike one of a file: a file may have been made for another server. Raises
    ServerConfigError.
    """
    return dict(_field(text) for text in given)


def _field(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise ServerConfigError(f"{FLAG}: {text!r} is not KEY=VALUE, as in {FLAG} job_queue_size=200")
    if key in WITHOUT_MEANING:
        raise ServerConfigError(f"{FLAG} {key}: has no effect: {WITHOUT_MEANING[key]}; leave it out")
    name = ALIASES.get(key, key)
    if name not in _FIELDS:
        hint = meant(key, value) or "docs/server-config.md lists the keys"
        raise ServerConfigError(f"{FLAG}: {key} is not a known key; {hint}")
    return name, value
