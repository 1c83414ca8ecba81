"""MindIR files that are encrypted."""

from pathlib import Path

from msx_core.errors import HandlerLoadError
from msx_core.mindir import MindIRError, MindIRSignature, parse_signature
from msx_core.mindir_collectives import Collective, collectives_in


class Decryption:
    """A key of 16, 24 or 32 bytes, and `AES-GCM` or `AES-CBC`. Its text does not have the key."""

    __slots__ = ("key", "mode")

    def __init__(self, key: bytes, mode: str) -> None:
        self.key, self.mode = key, mode

    def __repr__(self) -> str:
        return f"Decryption({self.mode})"


def decrypted(path: Path, decryption: Decryption) -> bytes:
    """Raises HandlerLoadError."""
    from mindspore._c_expression import _decrypt

    data: bytes = _decrypt(str(path), decryption.key, len(decryption.key), decryption.mode)
    if not data:
        raise HandlerLoadError(
            f"{path.name} cannot be decrypted: it is not encrypted, or with another key or mode than {decryption.mode}"
        )
    return data


def encrypted(data: bytes, decryption: Decryption) -> bytes:
    from mindspore._c_expression import _encrypt

    written: bytes = _encrypt(data, len(data), decryption.key, len(decryption.key), decryption.mode)
    return written


def read_encrypted(path: Path, decryption: Decryption) -> tuple[MindIRSignature, list[Collective]]:
    """Raises HandlerLoadError."""
    data = decrypted(path, decryption)
    try:
        return parse_signature(data, path.name), list(collectives_in(data, path.name))
    except MindIRError as error:
        raise HandlerLoadError(str(error)) from None
