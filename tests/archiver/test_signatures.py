"""Who has signed an archive."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from msx_archiver.cache import ArchiveCache
from msx_archiver.cli import main
from msx_archiver.signatures import LARGEST, SignatureError, check, ring_of
from tests.archiver.conftest import write_zip


def write_keys(folder: Path, name: str = "team") -> tuple[Path, Path]:
    """A private and a public key, in PEM as OpenSSL writes them."""
    folder.mkdir(exist_ok=True)
    key = Ed25519PrivateKey.generate()
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private, public


def run(*arguments: Any, code: int = 0) -> str:
    done = CliRunner().invoke(main, [str(one) for one in arguments])
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    return write_keys(tmp_path / "ring")


@pytest.fixture
def signed(mar: Path, keys: tuple[Path, Path]) -> Path:
    assert run("sign", mar, "--key", keys[0]) == f"{mar}.sig\n"
    return mar


def required(archive: Path, ring: Path, root: Path) -> ArchiveCache:
    return ArchiveCache(root, require=lambda path, digest: void(check(path, digest, ring)))


def void(_: object) -> None: ...


def test_signed_and_verified(signed: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
    assert "It is signed by the key " in run("verify", signed, "--keys", keys[1])
    assert "It is signed by the key " in run("verify", signed, "--keys", tmp_path / "ring")
    assert "by the key" not in run("verify", signed)


def test_only_what_is_signed_is_unpacked(signed: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
    cache = required(signed, keys[1], tmp_path / "cache")
    assert cache.unpack(signed).path.is_dir()
    assert cache.unpack(signed).path.is_dir(), "also when it is there already"
    Path(f"{signed}.sig").unlink()
    with pytest.raises(SignatureError, match="is not signed"):
        cache.unpack(signed)


def test_an_altered_archive_is_refused_before_a_byte_is_written(
    signed: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    write_zip(signed, [("handler.py", b"import os"), ("MAR-INF/MANIFEST.json", MANIFEST)])
    with pytest.raises(SignatureError, match="its content has changed since"):
        required(signed, keys[1], tmp_path / "cache").unpack(signed)
    assert not any(path.is_dir() for path in (tmp_path / "cache").iterdir())


MANIFEST = b'{"model": {"modelName": "m", "modelVersion": "1.0", "handler": "handler.py"}}'


def test_another_key(signed: Path, tmp_path: Path) -> None:
    other = write_keys(tmp_path / "others")[1]
    assert "is not in the key ring" in run("verify", signed, "--keys", other, code=1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"signature": "AAAA"}, "is not a valid signature"),
        ({"signature": "not base 64"}, "is not a valid signature"),
        ({"digest": "0" * 64}, "its content has changed since"),
        ({"format": "other"}, "is not a signature of msx-archiver"),
        ({"key": 7}, "is not in the key ring"),
    ],
)
def test_a_signature_that_was_changed(
    signed: Path, keys: tuple[Path, Path], change: dict[str, Any], words: str
) -> None:
    file = Path(f"{signed}.sig")
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    assert words in run("verify", signed, "--keys", keys[1], code=1)


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 5000, b'"' + b"x" * LARGEST + b'"'])
def test_what_is_not_a_signature(signed: Path, keys: tuple[Path, Path], content: bytes) -> None:
    Path(f"{signed}.sig").write_bytes(content)
    with pytest.raises(SignatureError):
        check(signed, "x", keys[1])


def test_keys_that_cannot_be_used(mar: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
    private, public = keys
    curve = generate_private_key(SECP256R1())
    (tmp_path / "ec.pem").write_bytes(curve.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    sign = partial(run, "sign", mar, "--key", code=1)
    for wrong in (tmp_path / "ec.pem", public, mar):
        assert "is not a private key of Ed25519" in sign(wrong)
    assert "cannot be read: No such file" in sign(tmp_path / "none")
    with pytest.raises(SignatureError, match="is not a public key of Ed25519"):
        ring_of(private)
    (tmp_path / "empty").mkdir()
    with pytest.raises(SignatureError, match="has 0 keys"):
        ring_of(tmp_path / "empty")


def test_folders_cannot_be_signed(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    assert "is a folder, which cannot be signed" in run("sign", tmp_path, "--key", keys[0], code=1)
