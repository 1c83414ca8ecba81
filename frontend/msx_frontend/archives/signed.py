"""`require_signature`: only archives that a key of the ring has signed are unpacked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msx_archiver.errors import ArchiveError
from msx_core.start_errors import StartError

KEY = "require_signature"


class KeyRingError(StartError):
    """The key ring cannot be used; the message names the file."""


def key_ring(required: bool, ring: Path | None) -> Path | None:
    """The ring, if signatures are required. Raises KeyRingError."""
    if not required:
        return None
    if ring is None:
        raise KeyRingError(f"{KEY} needs signature_keys: a PEM file of a public key, or a folder of such files.")
    from msx_archiver.signatures import ring_of  # a server without signatures loads no cryptography for them

    try:
        ring_of(ring)
    except ArchiveError as error:
        raise KeyRingError(f"signature_keys: {error}") from None
    return ring


def signed_by(ring: Path, store: Path, checked: Callable[[Path], bool]) -> Callable[[Path, str], None]:
    """Raises SignatureError for what is not signed. Signatures of downloads lie in the model store.

    `checked`: whether a folder is what a hub has as a commit, so that it needs no signature.

    The ring is read each time: keys are added and withdrawn without a restart.
    """
    from msx_archiver.signatures import SignatureError, check

    def require(archive: Path, digest: str) -> None:
        if not digest and checked(archive):
            return
        if not digest:
            raise SignatureError(
                f"{archive} is a folder, which cannot be signed, and {KEY} is on: pack it into an archive."
            )
        check(archive, digest, ring, [store])

    return require
