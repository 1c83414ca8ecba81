"""Certificates and keys: what is read, what is refused with which sentence, and that a handshake works."""

from __future__ import annotations

import socket
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from msx_net.tls.identity import TlsError, TlsIdentity, load_identity
from tests.certificates import Certificate, write_keystore, write_pem


@dataclass(frozen=True)
class Files:
    """Settings of a server."""

    keystore: Path | None = None
    keystore_pass: str = "changeit"
    keystore_type: str = "PKCS12"
    private_key_file: Path | None = None
    certificate_file: Path | None = None


@pytest.fixture(scope="module")
def own() -> Certificate:
    return Certificate.make()


def refusal(**settings: Any) -> str:
    with pytest.raises(TlsError) as error:
        load_identity(Files(**settings))
    return str(error.value)


def shake_hands(identity: TlsIdentity, client: ssl.SSLContext) -> str:
    """The version of TLS that both agree on."""
    near, far = socket.socketpair()
    near.settimeout(30)
    far.settimeout(30)
    with near, far:
        server = threading.Thread(target=serve_once, args=(identity.context(), far))
        server.start()
        try:
            with client.wrap_socket(near, server_hostname="localhost") as wrapped:
                assert wrapped.recv(2) == b"ok"
                return wrapped.version() or ""
        finally:
            near.close()
            server.join()


def serve_once(context: ssl.SSLContext, sock: socket.socket) -> None:
    try:
        with context.wrap_socket(sock, server_side=True) as wrapped:
            wrapped.send(b"ok")
    except (ssl.SSLError, OSError):
        return  # the client tells


def trusting(own: Certificate) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=own.pem.decode())


def test_pem(own: Certificate, tmp_path: Path) -> None:
    key, certificate = write_pem(own, tmp_path)
    identity = load_identity(Files(private_key_file=key, certificate_file=certificate))
    assert shake_hands(identity, trusting(own)) == "TLSv1.3"


def test_a_keystore_beats_pem(own: Certificate, tmp_path: Path) -> None:
    config = Files(keystore=write_keystore(own, tmp_path), private_key_file=Path("gone"))
    assert load_identity(config) == TlsIdentity(own.key_pem, own.pem)


def test_a_chain_stays_in_order(own: Certificate, tmp_path: Path) -> None:
    key, certificate = write_pem(own, tmp_path)
    other = Certificate.make()
    certificate.write_bytes(own.pem + other.pem)
    identity = load_identity(Files(private_key_file=key, certificate_file=certificate))
    assert identity.chain == own.pem + other.pem


def test_tls_1_1_is_refused(own: Certificate) -> None:
    client = trusting(own)
    client.minimum_version = ssl.TLSVersion.TLSv1_2
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    assert shake_hands(TlsIdentity(own.key_pem, own.pem), client) == "TLSv1.2"
    assert TlsIdentity(own.key_pem, own.pem).context().minimum_version == ssl.TLSVersion.TLSv1_2


def test_the_key_is_in_no_text(own: Certificate) -> None:
    assert "PRIVATE" not in repr(TlsIdentity(own.key_pem, own.pem))


def test_a_file_of_any_size_is_not_read(own: Certificate, tmp_path: Path) -> None:
    key, certificate = write_pem(own, tmp_path)
    certificate.write_bytes(b" " * ((1 << 20) + 1))
    said = refusal(private_key_file=key, certificate_file=certificate)
    assert said == (f"certificate_file: {certificate} has more than 1 MiB: it is not a key or certificates")


def test_half_of_it() -> None:
    assert refusal(private_key_file=Path("k")).startswith("private_key_file is set without certificate_file")
    assert refusal(certificate_file=Path("c")).startswith("certificate_file is set without private_key_file")


def test_none_of_it() -> None:
    assert "there is no certificate: set private_key_file and certificate_file (PEM), or keystore" in refusal()


def test_a_missing_file(own: Certificate, tmp_path: Path) -> None:
    key, certificate = write_pem(own, tmp_path)
    gone = tmp_path / "gone"
    for name, settings in {
        "keystore": {"keystore": gone},
        "private_key_file": {"private_key_file": gone, "certificate_file": certificate},
        "certificate_file": {"private_key_file": key, "certificate_file": gone},
    }.items():
        assert refusal(**settings) == f"{name}: {gone} cannot be read: No such file or directory"


def test_a_wrong_password(own: Certificate, tmp_path: Path) -> None:
    path = write_keystore(own, tmp_path, password="secret")
    said = refusal(keystore=path, keystore_pass="guess")
    assert said.startswith(f"keystore: {path} cannot be opened: keystore_pass is wrong")
    assert "guess" not in said


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"\xfe\xed\xfe\xed\0\0\0\2", "is a Java keystore (JKS), only PKCS12 is read; convert it: keytool"),
     (b"-----BEGIN", "is not a PKCS12 keystore"), (b"", "is not a PKCS12 keystore")],
)  # fmt: skip
def test_another_kind_of_file(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "store"
    path.write_bytes(content)
    assert words in refusal(keystore=path)


def test_another_type_of_keystore(tmp_path: Path) -> None:
    said = refusal(keystore=tmp_path / "k.jks", keystore_type="JKS")
    assert said.startswith("keystore_type: JKS is not read, only PKCS12; convert it: keytool -importkeystore")


def test_a_keystore_without_a_key(own: Certificate, tmp_path: Path) -> None:
    path = write_keystore(own, tmp_path, with_key=False)
    assert refusal(keystore=path) == f"keystore: {path} has no private key with its certificate"


def test_a_key_that_does_not_fit(own: Certificate, tmp_path: Path) -> None:
    _, certificate = write_pem(own, tmp_path)
    (other := tmp_path / "other").mkdir()
    key, _ = write_pem(Certificate.make(), other)
    said = refusal(private_key_file=key, certificate_file=certificate)
    assert said.startswith(f"private_key_file: the key in {key} does not belong to the first certificate in")


def test_an_encrypted_key(own: Certificate, tmp_path: Path) -> None:
    key, certificate = write_pem(own, tmp_path, password=b"secret")
    said = refusal(private_key_file=key, certificate_file=certificate)
    assert said == (
        f"private_key_file: {key} is encrypted; write it without a password: openssl pkey -in {key} -out key.pem"
    )


def test_files_that_are_not_pem(own: Certificate, tmp_path: Path) -> None:
    key, certificate = write_pem(own, tmp_path)
    (junk := tmp_path / "junk").write_bytes(b"x")
    assert refusal(private_key_file=junk, certificate_file=certificate).endswith("is not a private key in PEM format")
    assert refusal(private_key_file=key, certificate_file=junk).endswith("holds no certificate in PEM format")


def test_a_key_that_openssl_finds_too_short_names_file_and_remedy(tmp_path: Path) -> None:
    short = Certificate.make(key=rsa.generate_private_key(65537, 1024))
    key, certificate = write_pem(short, tmp_path)
    said = refusal(private_key_file=key, certificate_file=certificate)
    assert said.startswith(f"certificate_file: {certificate}: OpenSSL refuses the certificate or its key (")
    assert "KEY_TOO_SMALL" in said
    assert "an RSA key of 2048 bits or more" in said
    keystore = write_keystore(short, tmp_path)
    assert refusal(keystore=keystore).startswith(f"keystore: {keystore}: OpenSSL refuses")


def test_a_certificate_that_no_handshake_can_use_is_refused_at_the_start(tmp_path: Path) -> None:
    """OpenSSL reads it, and would refuse each client."""
    unusual = Certificate.make(key=ec.generate_private_key(ec.SECP256K1()))
    key, certificate = write_pem(unusual, tmp_path)
    said = refusal(private_key_file=key, certificate_file=certificate)
    assert said.startswith(f"certificate_file: {certificate}: OpenSSL refuses the certificate or its key (")
    assert "P-256" in said
