"""Certificates for tests, signed by themselves, for localhost."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)


@dataclass(frozen=True)
class Certificate:
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
    certificate: x509.Certificate

    @classmethod
    def make(cls, days: int = 30, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | None = None) -> Certificate:
        """Valid from long ago until `days` from now."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
        now = datetime.now(timezone.utc)
        names = x509.SubjectAlternativeName(
            [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        )
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=30))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(names, critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        )
        return cls(key, builder.sign(key, SHA256()))

    @property
    def pem(self) -> bytes:
        pem: bytes = self.certificate.public_bytes(Encoding.PEM)
        return pem

    @property
    def key_pem(self) -> bytes:
        return self.encoded_key(NoEncryption())

    def encoded_key(self, encryption: KeySerializationEncryption) -> bytes:
        pem: bytes = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
        return pem


def write_pem(own: Certificate, folder: Path, password: bytes | None = None) -> tuple[Path, Path]:
    """The paths of the key and of the certificate."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    key.write_bytes(own.encoded_key(BestAvailableEncryption(password) if password else NoEncryption()))
    certificate.write_bytes(own.pem)
    return key, certificate


def write_keystore(own: Certificate, folder: Path, password: str = "changeit", *, with_key: bool = True) -> Path:
    path = folder / "keystore.p12"
    encryption = BestAvailableEncryption(password.encode())
    key = own.key if with_key else None
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"server", key, own.certificate, None, encryption))
    return path
