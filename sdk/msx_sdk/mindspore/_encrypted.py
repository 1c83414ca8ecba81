"""MindIR files that are encrypted."""

from __future__ import annotations

from pathlib import Path

from msx_sdk._internal.mindir import MindIRError, MindIRSignature, parse_signature
from msx_sdk._internal.mindir_collectives import collectives_in
from msx_sdk.errors import HandlerLoadError


class Decryption:
    """A key of 16, 24 or 32 bytes, and `AES-GCM` or `AES-CBC`. Its text does not have the key."""

    __slots__ = ("key", "mode")

    def __init__(self, key: bytes, mode: str) -> None:
        self.key, self.mode = key, mode

    def __repr__(self) -> str:
        return f"Decryption({self.mode})"


def read_encrypted_signature(path: Path, decryption: Decryption) -> MindIRSignature:
    """Raises HandlerLoadError, also for a graph that computes together with other ranks."""
    from mindspore._c_expression import _decrypt

    data = _decrypt(str(path), decryption.key, len(decryption.key), decryption.mode)
    if not data:
        raise HandlerLoadError(
            f"{path.name} cannot be decrypted: it is not encrypted, or with another key or mode than {decryption.mode}"
        )
    try:
        signature = parse_signature(data, path.name)
        used = collectives_in(data, path.name)
    except MindIRError as error:
        raise HandlerLoadError(str(error)) from None
    if used:
        raise HandlerLoadError(f"{path.name} computes together with other ranks, and it is encrypted: decrypt it first")
    return signature
