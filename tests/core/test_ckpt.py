"""`.ckpt` files of MindSpore, written here byte by byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msx_sdk.errors import HandlerLoadError

np = pytest.importorskip("numpy")

from msx_core.mindspore.ckpt import CkptFile  # noqa: E402

VALUES = np.arange(24, dtype=np.float32).reshape(6, 4)


def varint(number: int) -> bytes:
    low, high = number & 127, number >> 7
    return bytes([low | 128]) + varint(high) if high else bytes([low])


def text(key: int, data: bytes) -> bytes:
    return varint(key << 3 | 2) + varint(len(data)) + data


def value(name: str, shape: tuple[int, ...], dtype: str, data: bytes, packed: bool = False) -> bytes:
    numbers = [varint(size) for size in shape]
    dims = text(1, b"".join(numbers)) if packed else b"".join(b"\x08" + number for number in numbers)
    tensor = dims + text(2, dtype.encode()) + text(3, data)
    return text(1, text(1, name.encode()) + text(2, tensor))


def opened(folder: Path, data: bytes) -> CkptFile:
    (folder / "w.ckpt").write_bytes(data)
    return CkptFile(folder / "w.ckpt")


WHOLE = value("w", (6, 4), "Float32", VALUES.tobytes())
PIECES = b"".join(value("w", (6, 4), "Float32", VALUES[a:b].tobytes()) for a, b in ((0, 1), (1, 4), (4, 6)))


@pytest.mark.parametrize("data", [WHOLE, PIECES, PIECES + b"crc_num" + bytes(10)])
@pytest.mark.parametrize("index", [..., (slice(1, 5),), (slice(None), slice(1, 2)), (slice(3, 3),), (slice(4, 99),)])
def test_parts_of_a_tensor(data: bytes, index: Any, tmp_path: Path) -> None:
    tensor = opened(tmp_path, value("n", (0,), "Int32", bytes(4)) + data).get_slice("w")
    assert (tensor.get_shape(), tensor.get_dtype()) == ([6, 4], "Float32")
    assert np.array_equal(tensor[index], VALUES[index])


def test_a_tensor_without_numbers(tmp_path: Path) -> None:
    assert opened(tmp_path, value("w", (6, 0), "Float32", b"")).get_slice("w")[slice(1, 3),].shape == (2, 0)


def test_other_types(tmp_path: Path) -> None:
    half = (VALUES.view(np.uint32) >> 16).astype(np.uint16)
    data = value("b", (6, 4), "BFloat16", half.tobytes(), packed=True) + value("h", (2,), "Float16", bytes(4))
    file = opened(tmp_path, data + value("s", (3,), "str", b"abc"))
    assert file.keys() == ["b", "h"]
    assert np.array_equal(file.get_slice("b")[...], VALUES)
    assert file.get_slice("h")[...].tolist() == [0, 0]


BROKEN = r"w\.ckpt is not a checkpoint of MindSpore, is not whole, or is encrypted"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"w\.ckpt cannot be read"),
        (b"\x80\x02pickle", r"w\.ckpt is not a checkpoint of MindSpore, it is a pickle"),
        (b"version https://git-lfs.github.com/spec/v1\n", r"w\.ckpt is not .* it is a pointer of Git LFS"),
        (WHOLE[:-1], BROKEN),
        (b"\xff" * 40, BROKEN),
        (text(1, text(1, b"w")), BROKEN),
        (b"\x08\x01", BROKEN),
        (value("w" * 1025, (1,), "Float32", bytes(4)), BROKEN),
        (value("w", (1,) * 9, "Float32", bytes(4)), BROKEN),
        (value("w", (1,) * 9, "Float32", bytes(4), packed=True), BROKEN),
        (WHOLE + value("w", (4, 6), "Float32", bytes(96)), BROKEN),
        (value("w", (6, 4), "Float32", bytes(95)), "w does not have the 96 bytes of its shape"),
        (WHOLE + WHOLE, "w does not have the 96 bytes of its shape"),
        (value("w", (1 << 40, 1 << 40), "Float32", bytes(4)), "w does not have the"),
        (value("w", (2,), "Int4", bytes(4)), "w has the type Int4; known are Float32"),
    ],
)
def test_what_is_refused(data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(HandlerLoadError, match=message):
        opened(tmp_path, data)
