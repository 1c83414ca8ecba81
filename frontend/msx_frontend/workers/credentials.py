"""Which variables of the server's environment are secrets."""

import re
from collections.abc import Mapping

KEYS = frozenset({"MSX_API_KEY"})
"""Keys of this server: a worker never needs them."""

_STORES = re.compile(
    r"AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN|SECURITY_TOKEN|CONTAINER_AUTHORIZATION_TOKEN)"
    r"|AZURE_(STORAGE_KEY|STORAGE_CONNECTION_STRING|STORAGE_SAS_TOKEN|CLIENT_SECRET)"
    r"|GOOGLE_APPLICATION_CREDENTIALS"
    r"|(OBS|S3|OSS|MINIO)_(ACCESS_KEY|ACCESS_KEY_ID|SECRET_KEY|SECRET_ACCESS_KEY|SECURITY_TOKEN|SESSION_TOKEN)"
    r"|HF_TOKEN|HUGGING_FACE_HUB_TOKEN|HUGGINGFACE_TOKEN|HUGGINGFACEHUB_API_TOKEN"
    r"|MODELSCOPE_(API_TOKEN|ACCESS_TOKEN)|MODELERS_TOKEN|OPENMIND_TOKEN"
)
"""Credentials for stores and hubs, from which models are fetched."""


def stores_credentials(env: Mapping[str, str]) -> list[str]:
    """The names of the credentials for stores that `env` has."""
    return sorted(name for name in env if _STORES.fullmatch(name))


def without_credentials(env: Mapping[str, str], *, keep_stores: bool) -> dict[str, str]:
    left = KEYS if keep_stores else KEYS.union(stores_credentials(env))
    return {name: value for name, value in env.items() if name not in left}
