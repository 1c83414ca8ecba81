"""The key that is meant by one that is not known."""

from collections.abc import Collection, Mapping

from msx_core.config.keys import ModelKeys
from msx_core.config.sections import names_of
from msx_core.values import near_miss
from msx_frontend.config.keys import ALIASES
from msx_frontend.config.server_config import ServerConfig

_KEYS = (*ServerConfig.__struct_fields__, *ALIASES)
_OPPOSITE = {"enable": "disable", "disable": "enable"}
_INVERTED = {"true": "false", "false": "true"}
_LEAST = 5
"""Characters of a part of a name that tells which one is meant."""

_ELSEWHERE = {
    "address": "inference_address",
    "host": "inference_address",
    "port": "inference_address",
    "inference_port": "inference_address",
    "management_port": "management_address",
    "metrics_port": "metrics_address",
    "grpc_port": "grpc_inference_port",
    "api_key": "api_keys_file",
    "tokens": "api_keys_file",
    "auth": "disable_token_authorization",
    "authorization": "disable_token_authorization",
    "cert_file": "certificate_file",
    "ssl_certificate": "certificate_file",
    "tls_certificate": "certificate_file",
    "ssl_key": "private_key_file",
    "tls_key": "private_key_file",
    "log_level": "log_config",
    "ncs": "snapshots",
    "no_config_snapshots": "snapshots",
    "ppath": "plugins_path",
    "timeout": "default_response_timeout",
    "max_body_size": "max_request_size",
}
"""Names of flags, and of other servers."""


def meant(key: str, value: str = "") -> str:
    """A question that names the key, such as `did you mean job_queue_size?`; "" where none is near.

    A switch of the opposite sense is named with the opposite of `value`.
    """
    near = near_miss(key, _KEYS)
    if near and _sense(near) != _sense(key):
        near = None
    if found := near or _only_with(key, _KEYS):
        return f"did you mean {found}?"
    if opposite := _opposite(key):
        inverted = _INVERTED.get(value.strip().lower())
        return f"did you mean {opposite}={inverted}?" if inverted else f"did you mean {opposite}, its opposite?"
    if found := near_miss(key, _ELSEWHERE):
        return f"did you mean {_ELSEWHERE[found]}?"
    if found := near_miss(key, names_of(ModelKeys)):
        return f"{found} is a key of a model: write it into its model-config.yaml"
    return ""


def _opposite(key: str) -> str | None:
    """The switch `disable_x` for `enable_x`, and the other way round."""
    word, _, rest = key.partition("_")
    other = _OPPOSITE.get(word.lower())
    switches: Mapping[str, str] = {
        name.removeprefix(f"{other}_"): name for name in _KEYS if other and name.startswith(f"{other}_")
    }
    found = near_miss(rest, switches) or _only_with(rest, switches)
    return switches[found] if found else None


def _sense(key: str) -> str:
    word = key.partition("_")[0].lower()
    return word if word in _OPPOSITE else ""


def _only_with(part: str, names: Collection[str]) -> str | None:
    """The only name that has this part."""
    wanted = part.lower().replace("-", "_")
    found = [name for name in names if wanted in name] if len(wanted) >= _LEAST else []
    return found[0] if len(found) == 1 else None
