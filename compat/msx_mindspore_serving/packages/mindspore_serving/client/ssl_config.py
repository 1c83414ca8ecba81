"""The certificates of a client."""

from .._checks import check_str


class SSLConfig:
    """PEM files, which `Client` reads. `certificate` and `private_key` are for servers that ask for a certificate."""

    def __init__(
        self, certificate: str | None = None, private_key: str | None = None, custom_ca: str | None = None
    ) -> None:
        """Raises RuntimeError."""
        for name, value in (("certificate", certificate), ("private_key", private_key), ("custom_ca", custom_ca)):
            if value is not None:
                check_str(name, value)
        self.certificate, self.private_key, self.custom_ca = certificate, private_key, custom_ca
