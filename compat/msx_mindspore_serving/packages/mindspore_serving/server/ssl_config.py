"""The certificates of a listener."""

from .._checks import check_bool, check_str


class SSLConfig:
    """PEM files, which are read when the listener starts. `custom_ca` is used only with `verify_client`."""

    def __init__(
        self, certificate: str, private_key: str, custom_ca: str | None = None, verify_client: bool = False
    ) -> None:
        """Raises RuntimeError."""
        check_str("certificate", certificate)
        check_str("private_key", private_key)
        check_bool("verify_client", verify_client)
        if verify_client:
            check_str("custom_ca", custom_ca)
        self.certificate, self.private_key = certificate, private_key
        self.custom_ca = custom_ca if verify_client else None
        self.verify_client = verify_client
