"""Detached signatures of archives: Ed25519 over the digest of the content, in `NAME.mar.sig` beside the archive.

The digest is the one by which the archive is unpacked (`identity.content_digest`): what is not signed is never
unpacked, and what is unpacked is compared with it. OpenSSF's model-signing (1.1.1) can sign with plain keys, too, but
brings forty packages, and does not start without one that it does not name.
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from msx_archiver.errors import ArchiveError

SUFFIX = ".sig"
FORMAT = "msx-archive-signature-1"
LARGEST = 64 << 10
"""Bytes of a signature, or of a key."""
MOST_KEYS = 1000


class SignatureError(ArchiveError):
    """An archive is not signed by a trusted key, or a key cannot be used; the message names it."""


def sign(digest: str, private_key: Path) -> bytes:
    """The content of the signature file. Raises SignatureError."""
    key = _private(private_key)
    public = key.public_key()
    made = {"format": FORMAT, "key": key_id(public), "digest": digest}
    signature = base64.b64encode(key.sign(_message(digest))).decode()
    return json.dumps({**made, "signature": signature}, indent=1).encode() + b"\n"


def check(archive: Path, digest: str, ring: Path, places: Sequence[Path] = ()) -> str:
    """The id of the trusted key that has signed this content.

    `ring` is a PEM file, or a folder of such files (`*.pem`, `*.pub`). The signature lies beside the archive, or in
    one of the folders `places`. Raises SignatureError.
    """
    file = _signature_of(archive, places)
    said = _read(file)
    keys = ring_of(ring)
    key = keys.get(str(said.get("key")))
    if key is None:
        raise SignatureError(f"{file} is of the key {said.get('key')}, which is not in the key ring {ring}.")
    if said.get("digest") != digest:
        raise SignatureError(f"{archive.name} is not what was signed: its content has changed since. Sign it again.")
    try:
        key.verify(base64.b64decode(str(said.get("signature")), validate=True), _message(digest))
    except (InvalidSignature, ValueError):
        raise SignatureError(f"{file} is not a valid signature of the key {said['key']}.") from None
    return str(said["key"])


def ring_of(ring: Path) -> Mapping[str, Ed25519PublicKey]:
    """The public keys by their ids. Raises SignatureError."""
    files = sorted(_pems(ring)) if ring.is_dir() else [ring]
    if not files or len(files) > MOST_KEYS:
        raise SignatureError(
            f"The key ring {ring} has {len(files)} keys; it must have 1 to {MOST_KEYS} (*.pem, *.pub)."
        )
    return {key_id(key): key for key in map(_public, files)}


def key_id(key: Ed25519PublicKey) -> str:
    """The first 16 hex digits of the SHA-256 of the key (DER)."""
    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()[:16]


def _message(digest: str) -> bytes:
    """Message to sign. It begins with the format, so that no signature of something else fits."""
    return f"{FORMAT}:{digest}".encode()


def _signature_of(archive: Path, places: Sequence[Path]) -> Path:
    name = archive.name + SUFFIX
    for folder in (archive.parent, *places):
        if (folder / name).is_file():
            return folder / name
    raise SignatureError(f"{archive.name} is not signed: {name} is missing beside it (msx-archiver sign makes it).")


def _read(file: Path) -> Mapping[str, object]:
    try:
        said = json.loads(_bytes(file))
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise SignatureError(f"{file} is not a signature of msx-archiver ({FORMAT}).")
    return said


def _pems(folder: Path) -> Iterator[Path]:
    return (file for file in folder.iterdir() if file.suffix in (".pem", ".pub") and file.is_file())


def _public(file: Path) -> Ed25519PublicKey:
    try:
        key = load_pem_public_key(_bytes(file))
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise SignatureError(f"{file} is not a public key of Ed25519 in PEM (openssl pkey -pubout makes it).")
    return key


def _private(file: Path) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(_bytes(file), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise SignatureError(
            f"{file} is not a private key of Ed25519 in PEM without a password (openssl genpkey -algorithm ed25519)."
        )
    return key


def _bytes(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST + 1)
    except OSError as error:
        raise SignatureError(f"{file} cannot be read: {error.strerror}.") from None
    if len(content) > LARGEST:
        raise SignatureError(f"{file} is larger than {LARGEST >> 10} KiB: it is neither a key nor a signature.")
    return content
