"""Keys of encrypted models."""

from .._checks import check_str

_KEY_LENGTHS = (16, 24, 32)
_DEC_MODES = ("AES-GCM", "AES-CBC")


def check_decryption(key: object, mode: object) -> None:
    """Raises RuntimeError."""
    _check_key(key)
    check_str("dec_mode", mode)
    if mode not in _DEC_MODES:
        raise RuntimeError("Parameter 'dec_mode' expected to be 'AES-GCM' or 'AES-CBC'")


def _check_key(key: object) -> None:
    if key is None:
        return
    if not isinstance(key, bytes):
        raise RuntimeError(f"Parameter 'dec_key' should be bytes, but actually {type(key)}")
    if not key:
        raise RuntimeError("Parameter 'dec_key' should not be empty bytes")
    if len(key) not in _KEY_LENGTHS:
        raise RuntimeError(f"Parameter 'dec_key' length {len(key)} expected to be 16, 24 or 32")
