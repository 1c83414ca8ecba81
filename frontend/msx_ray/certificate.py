"""`python -m msx_ray.certificate`: prints a new private key and its certificate, as PEM.

A process of its own, because the library for it is large: the server needs it once.
"""

import datetime
import hashlib
import ssl
import sys
from typing import NamedTuple

EARLIER = datetime.timedelta(days=1)
"""Clocks of nodes differ: it is valid from so long ago."""
VALID = datetime.timedelta(days=3650)


class Identity(NamedTuple):
    """`pem` is key and certificate; `pin` the certificate's SHA-256 in hex, by which the other side knows it."""

    pem: bytes
    pin: str


def make_identity() -> Identity:
    """Make the identity of this process: nobody signs it, the other side gets its pin by another way."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "msx-serve")])
    start = datetime.datetime.now(datetime.timezone.utc) - EARLIER
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), start, start + VALID)
    certificate = builder.sign(key, hashes.SHA256())
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    return identity_of(pem + certificate.public_bytes(serialization.Encoding.PEM))


def identity_of(pem: bytes) -> Identity:
    """Read what this module prints."""
    certificate = pem[pem.index(b"-----BEGIN CERTIFICATE-----") :].decode("ascii")
    return Identity(pem, pin_of(ssl.PEM_cert_to_DER_cert(certificate)))


def pin_of(der: bytes) -> str:
    return hashlib.sha256(der).hexdigest()


if __name__ == "__main__":
    sys.stdout.buffer.write(make_identity().pem)
