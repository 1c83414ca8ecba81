"""The server's certificate and key: two PEM files, or a PKCS12 keystore, as TorchServe takes them.

Every listener with TLS uses the same: by `context()`, or grpc.aio by `key` and `chain`. `tls_listeners`
reads them again.
"""

import os
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from msx_core.start_errors import StartError
from msx_net.tls.validity import Validity, validity_of

MOST_BYTES = 1 << 20
"""Largest file."""

_JKS = b"\xfe\xed\xfe\xed"
_CONVERT = (
    "convert it: keytool -importkeystore -srckeystore {path} -destkeystore keystore.p12 -deststoretype PKCS12, "
    "and set keystore=keystore.p12"
)
_ANY_REMEDY = (
    "use one with an RSA key of 2048 bits or more, or a key on the curve P-256, signed with SHA-256; "
    "openssl x509 -text shows what it has"
)
_REMEDIES = {
    "KEY_TOO_SMALL": "the key is too short to be safe: use one with an RSA key of 2048 bits or more (openssl genpkey "
    "-algorithm RSA -pkeyopt rsa_keygen_bits:3072), or a key on the curve P-256, throughout the chain",
    "MD_TOO_WEAK": "it is signed with SHA-1 or MD5: have it, and the others of its chain, signed with SHA-256",
}
"""Remedies by a part of OpenSSL's reason."""


class CertificateFiles(Protocol):
    """The settings of the certificate: members of the names that the keys of the configuration have."""

    @property
    def keystore(self) -> Path | None: ...
    @property
    def keystore_pass(self) -> str: ...
    @property
    def keystore_type(self) -> str: ...
    @property
    def private_key_file(self) -> Path | None: ...
    @property
    def certificate_file(self) -> Path | None: ...


class TlsError(StartError):
    """A certificate or key that cannot be used; the message names key of the configuration, file and remedy."""


@dataclass(frozen=True)
class TlsIdentity:
    """Both as PEM: the unencrypted key, and the certificates with the server's own first."""

    key: bytes = field(repr=False)
    chain: bytes

    @cached_property
    def validity(self) -> Validity:
        return validity_of(self.chain)

    @property
    def told(self) -> str:
        """Text for the log."""
        return f"{self.validity.subject}, valid until {self.validity.end_text}"

    def context(self, protocols: Sequence[str] = ("http/1.1",), authorities: bytes | None = None) -> ssl.SSLContext:
        """Make a context for listeners that speak `protocols` (their names in ALPN): TLS 1.2 and later. With
        `authorities` (PEM), only for clients with a certificate that one of them has signed, or that is one of them.

        The key is read from memory, never from a temporary file.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(list(protocols))
        with _in_memory(self.key + self.chain) as path:
            context.load_cert_chain(path)
        if authorities is not None:
            _demand(context, authorities)
        return context


def load_identity(files: CertificateFiles) -> TlsIdentity:
    """The keystore, where one is set, beats the PEM files (TorchServe's rule). Raises TlsError. Reads files."""
    if files.keystore is not None:
        key, certificates = _of_keystore(files.keystore, files.keystore_pass, files.keystore_type)
    elif files.private_key_file is not None and files.certificate_file is not None:
        key = _key_of(files.private_key_file)
        certificates = _certificates_of(files.certificate_file)
    else:
        raise TlsError(_nothing_set(files))
    if _public(key) != _public(certificates[0]):
        raise TlsError(_does_not_fit(files))
    identity = TlsIdentity(_key_pem(key), b"".join(_certificate_pem(one) for one in certificates))
    _check_usable(source(files), identity)
    return identity


def source(files: CertificateFiles) -> str:
    """The key and the file of the certificate, for messages."""
    key = "certificate_file" if files.keystore is None else "keystore"
    return f"{key}: {getattr(files, key)}"


def authorities_of(key: str, path: Path) -> bytes:
    """Read from `path`, which the configuration's `key` names, who may sign certificates of clients, as PEM. Raises
    TlsError."""
    return b"".join(_certificate_pem(one) for one in _certificates_of(path, key))


def _demand(context: ssl.SSLContext, authorities: bytes) -> None:
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # an authority need not have signed itself
    context.load_verify_locations(cadata=authorities.decode())
    # A client that resumes a session would not be asked again, although the authorities may have changed.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET


def _nothing_set(files: CertificateFiles) -> str:
    given = "private_key_file" if files.private_key_file else "certificate_file" if files.certificate_file else None
    if given is not None:
        other = "certificate_file" if given == "private_key_file" else "private_key_file"
        return f"{given} is set without {other}: TLS needs both; set {other} in config.properties"
    return (
        "TLS is switched on (by an https:// address or enable_grpc_ssl), but there is no certificate: set "
        "private_key_file and certificate_file (PEM), or keystore and keystore_pass (PKCS12), in config.properties"
    )


def _does_not_fit(files: CertificateFiles) -> str:
    if files.keystore is not None:
        return f"keystore: the key in {files.keystore} does not belong to the certificate beside it"
    return (
        f"private_key_file: the key in {files.private_key_file} does not belong to the first certificate in "
        f"certificate_file ({files.certificate_file}); the server's own certificate must come first"
    )


def _of_keystore(path: Path, password: str, kind: str) -> tuple[Any, list[Any]]:
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    if kind.upper() not in ("PKCS12", "P12"):
        raise TlsError(f"keystore_type: {kind} is not read, only PKCS12; {_CONVERT.format(path=path)}")
    data = _read("keystore", path)
    if data.startswith(_JKS):
        raise TlsError(f"keystore: {path} is a Java keystore (JKS), only PKCS12 is read; {_CONVERT.format(path=path)}")
    if not data.startswith(b"\x30"):  # an ASN.1 sequence
        raise TlsError(f"keystore: {path} is not a PKCS12 keystore")
    try:
        store = load_pkcs12(data, password.encode())
    except ValueError:
        raise TlsError(
            f"keystore: {path} cannot be opened: keystore_pass is wrong, or the file is damaged; "
            "see whether openssl pkcs12 opens it"
        ) from None
    if store.key is None or store.cert is None:
        raise TlsError(f"keystore: {path} has no private key with its certificate")
    return store.key, [store.cert.certificate, *(extra.certificate for extra in store.additional_certs)]


def _key_of(path: Path) -> Any:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    data = _read("private_key_file", path)
    try:
        return load_pem_private_key(data, None)
    except TypeError:
        raise TlsError(
            f"private_key_file: {path} is encrypted; write it without a password: openssl pkey -in {path} -out key.pem"
        ) from None
    except Exception:  # ValueError and UnsupportedAlgorithm, by version
        raise TlsError(f"private_key_file: {path} is not a private key in PEM format") from None


def _certificates_of(path: Path, key: str = "certificate_file") -> list[Any]:
    from cryptography.x509 import load_pem_x509_certificates

    try:
        return list(load_pem_x509_certificates(_read(key, path)))
    except ValueError:
        raise TlsError(f"{key}: {path} holds no certificate in PEM format") from None


def _read(name: str, path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise TlsError(f"{name}: {path} cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise TlsError(f"{name}: {path} has more than {MOST_BYTES >> 20} MiB: it is not a key or certificates")
    return data


def _check_usable(name: str, identity: TlsIdentity) -> None:
    """OpenSSL refuses some when it reads them, by its security level, and others only when a client comes."""
    try:
        _shake_hands(identity.context())
    except ssl.SSLError as error:
        reason = error.reason or str(error)
        remedy = next((remedy for part, remedy in _REMEDIES.items() if part in reason), _ANY_REMEDY)
        raise TlsError(
            f"{name}: OpenSSL refuses the certificate or its key ({reason}, {ssl.OPENSSL_VERSION}): {remedy}"
        ) from None


def _shake_hands(context: ssl.SSLContext) -> None:
    """Shake hands with a client in this thread that trusts anybody. Raises ssl.SSLError."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [trusting.wrap_bio(back, there), context.wrap_bio(there, back, server_side=True)]
    for end in ends * 2:
        with suppress(ssl.SSLWantReadError):
            end.do_handshake()


def _public(holder: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public: bytes = holder.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return public


def _key_pem(key: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    pem: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem


def _certificate_pem(certificate: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    pem: bytes = certificate.public_bytes(Encoding.PEM)
    return pem


@contextmanager
def _in_memory(data: bytes) -> Iterator[str]:
    """A path that only this process can open, of a file that no disk has."""
    fd = os.memfd_create("msx-tls")
    try:
        os.write(fd, data)
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)
