from __future__ import annotations

from typing import Any

import pytest

from msx_mindspore_serving.packages.mindspore_serving.server.ssl_config import SSLConfig
from msx_mindspore_serving.packages.mindspore_serving.server.start_config import ServableStartConfig

DEVICE_TYPES = "only support 'Ascend', 'GPU', 'CPU' and None, case ignored"
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"servable_directory": 1}, "Parameter 'servable_directory' should be str, but actually <class 'int'>"),
    ({"servable_directory": ""}, "Parameter 'servable_directory' should not be empty str"),
    ({"servable_name": None}, "Parameter 'servable_name' should be str, but actually <class 'NoneType'>"),
    ({"servable_name": ""}, "Parameter 'servable_name' should not be empty str"),
    ({"version_number": -1}, "Parameter 'version_number' should be >= 0"),
    ({"version_number": True}, "Parameter 'version_number' should be int, but actually <class 'bool'>"),
    ({"num_parallel_workers": 65}, "Parameter 'num_parallel_workers' should be in range [0,64]"),
    ({"num_parallel_workers": -1}, "Parameter 'num_parallel_workers' should be in range [0,64]"),
    ({"num_parallel_workers": 1.0}, "Parameter 'num_parallel_workers' should be int, but actually <class 'float'>"),
    ({"dec_key": "a" * 16}, "Parameter 'dec_key' should be bytes, but actually <class 'str'>"),
    ({"dec_key": b""}, "Parameter 'dec_key' should not be empty bytes"),
    ({"dec_key": b"a" * 15}, "Parameter 'dec_key' length 15 expected to be 16, 24 or 32"),
    ({"dec_mode": ""}, "Parameter 'dec_mode' should not be empty str"),
    ({"dec_mode": "aes-gcm"}, "Parameter 'dec_mode' expected to be 'AES-GCM' or 'AES-CBC'"),
    ({"device_ids": "0"}, "Parameter 'device_ids' should be int or tuple/list of int, but actually <class 'str'>"),
    ({"device_ids": (0, 0)}, "The item value '0' in parameter 'device_ids' should not be repeated"),
    ({"device_type": 1}, "Parameter 'device_type' should be str, but actually <class 'int'>"),
    ({"device_type": ""}, "Parameter 'device_type' should not be empty str"),
    ({"device_type": "TPU"}, f"Unsupported device type 'TPU', {DEVICE_TYPES}"),
    # what stands earlier in the list is checked first
    ({"dec_key": b"", "version_number": -1}, "Parameter 'version_number' should be >= 0"),
    ({"device_type": "TPU", "device_ids": -1}, "The item value '-1' in parameter 'device_ids' should be >= 0"),
]


@pytest.mark.parametrize(("arguments", "text"), REFUSED, ids=[str(arguments) for arguments, _ in REFUSED])
def test_arguments_that_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(RuntimeError) as raised:
        ServableStartConfig(**{"servable_directory": "d", "servable_name": "n", **arguments})
    assert str(raised.value) == text


def test_properties() -> None:
    config = ServableStartConfig("d", "n")
    assert (config.servable_directory, config.servable_name, config.version_number) == ("d", "n", 0)
    assert (config.device_ids, config.device_type, config.num_parallel_workers) == ((), "none", 1)
    assert (config.dec_key, config.dec_mode) == (None, "AES-GCM")
    config = ServableStartConfig("d", "n", [3, 1], 2, "ASCEND", 0, b"k" * 24, "AES-CBC")
    assert (config.device_ids, config.device_type, config.num_parallel_workers) == ((3, 1), "ascend", 0)
    assert (config.version_number, config.dec_key, config.dec_mode) == (2, b"k" * 24, "AES-CBC")
    assert ServableStartConfig("d", "n", 2, num_parallel_workers=4).num_parallel_workers == 4
    assert ServableStartConfig("d", "n", device_type="None").device_type == "none"
    with pytest.raises(AttributeError):
        config.version_number = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("", "k"), "Parameter 'certificate' should not be empty str"),
        ((None, "k"), "Parameter 'certificate' should be str, but actually <class 'NoneType'>"),
        (("c", 1), "Parameter 'private_key' should be str, but actually <class 'int'>"),
        (("c", "k", None, 1), "Parameter 'verify_client' should be bool, but actually <class 'int'>"),
        (("c", "k", None, True), "Parameter 'custom_ca' should be str, but actually <class 'NoneType'>"),
        (("c", "k", "", True), "Parameter 'custom_ca' should not be empty str"),
    ],
)
def test_ssl_arguments_that_are_refused(arguments: tuple[Any, ...], text: str) -> None:
    with pytest.raises(RuntimeError) as raised:
        SSLConfig(*arguments)
    assert str(raised.value) == text


def test_the_authority_is_used_for_clients_only() -> None:
    assert SSLConfig("c", "k", 5).custom_ca is None  # type: ignore[arg-type]
    assert SSLConfig("c", "k", "a", verify_client=True).custom_ca == "a"
