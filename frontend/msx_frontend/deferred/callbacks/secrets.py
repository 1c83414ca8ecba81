"""The secrets that callbacks are signed with, as Standard Webhooks has them.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
from collections.abc import Sequence
from pathlib import Path

from msx_core.start_errors import StartError
from msx_frontend.keys.secret_file import SecretFileError, read_secret_file

log = logging.getLogger("msx.jobs")

PREFIX = "whsec_"
FEWEST, MOST_BYTES = 24, 64
"""Bytes of a secret."""
MOST_SECRETS = 10
"""Secrets with which one callback is signed: an old one and a new one, while receivers change."""


class CallbackSecretsError(StartError):
    """The file of secrets cannot be used; the message names it, and shows no secret."""


class Signer:
    def __init__(self, secrets: Sequence[bytes]) -> None:
        self._secrets = secrets

    def headers(self, id: str, seconds: int, body: bytes) -> dict[str, str]:
        """`seconds` since the epoch at which it is sent."""
        signed = b"%b.%d.%b" % (id.encode(), seconds, body)
        return {
            "webhook-id": id,
            "webhook-timestamp": str(seconds),
            "webhook-signature": " ".join(f"v1,{_digest(secret, signed)}" for secret in self._secrets),
        }


def read_secrets(path: Path) -> list[bytes]:
    """One a line; empty lines and those with a `#` at their beginning are passed over. Blocks. Raises
    CallbackSecretsError."""
    try:
        content = read_secret_file("callback_secrets", path, "and so sign callbacks in the server's name")
    except SecretFileError as error:
        raise CallbackSecretsError(str(error)) from None
    if content.warning:
        log.warning("%s", content.warning)
    lines = [line.strip() for line in content.data.split(b"\n")]
    found = [_secret(path, number, line) for number, line in enumerate(lines, 1) if line and not line.startswith(b"#")]
    if not 0 < len(found) <= MOST_SECRETS:
        raise CallbackSecretsError(
            f"callback_secrets: {path} has {len(found)} secrets: 1 to {MOST_SECRETS} are expected, one a line"
        )
    return found


def _secret(path: Path, number: int, line: bytes) -> bytes:
    try:
        text = line.decode("ascii")
        secret = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except (UnicodeDecodeError, binascii.Error):
        text, secret = "", b""
    if not text.startswith(PREFIX) or not FEWEST <= len(secret) <= MOST_BYTES:
        raise CallbackSecretsError(
            f"callback_secrets: {path}, line {number}: expected {PREFIX} and {FEWEST} to {MOST_BYTES} random bytes in "
            f'base64: echo "{PREFIX}$(openssl rand -base64 32)"'
        )
    return secret


def _digest(secret: bytes, signed: bytes) -> str:
    return base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()
