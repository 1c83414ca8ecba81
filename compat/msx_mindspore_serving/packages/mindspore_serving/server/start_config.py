"""Which servable is started, and on what."""

from collections.abc import Sequence

from .._checks import as_ints, check_int, check_str
from .decryption import check_decryption

_MOST_PARALLEL = 64
_DEVICE_TYPES = ("ascend", "gpu", "cpu", "none")


class ServableStartConfig:
    """One servable, or one version of it. What it names is looked for by `start_servables`."""

    def __init__(
        self,
        servable_directory: str,
        servable_name: str,
        device_ids: int | Sequence[int] | None = None,
        version_number: int = 0,
        device_type: str | None = None,
        num_parallel_workers: int = 0,
        dec_key: bytes | None = None,
        dec_mode: str = "AES-GCM",
    ) -> None:
        """`version_number` 0 is the newest version. Raises RuntimeError."""
        check_str("servable_directory", servable_directory)
        check_str("servable_name", servable_name)
        check_int("version_number", version_number, 0)
        check_int("num_parallel_workers", num_parallel_workers, 0, _MOST_PARALLEL)
        check_decryption(dec_key, dec_mode)
        self._servable_directory, self._servable_name = servable_directory, servable_name
        self._version_number = version_number
        self._dec_key, self._dec_mode = dec_key, dec_mode
        self._device_ids = () if device_ids is None else as_ints("device_ids", device_ids)
        self._device_type = _device_type(device_type)
        self._num_parallel_workers = num_parallel_workers if num_parallel_workers or self._device_ids else 1

    @property
    def servable_directory(self) -> str:
        return self._servable_directory

    @property
    def servable_name(self) -> str:
        return self._servable_name

    @property
    def version_number(self) -> int:
        return self._version_number

    @property
    def device_ids(self) -> tuple[int, ...]:
        return self._device_ids

    @property
    def device_type(self) -> str:
        """Kind of device in lower case; "none" where none is named."""
        return self._device_type

    @property
    def num_parallel_workers(self) -> int:
        """1 where neither it nor devices are given."""
        return self._num_parallel_workers

    @property
    def dec_key(self) -> bytes | None:
        return self._dec_key

    @property
    def dec_mode(self) -> str:
        return self._dec_mode


def _device_type(given: object) -> str:
    if given is None:
        return "none"
    check_str("device_type", given)
    if (lower := str(given).lower()) not in _DEVICE_TYPES:
        raise RuntimeError(
            f"Unsupported device type '{given}', only support 'Ascend', 'GPU', 'CPU' and None, case ignored"
        )
    return lower
