"""RFC 7541: header blocks that are wrong, and (h2spec's generic group 5) each form that a field may have."""

from __future__ import annotations

from hpack.huffman_table import decode_huffman

from msx_net.http2.errors import ErrorCode
from tests.conformance.http2.script import GET_BLOCK, Answered, Case, Goaway, block

_COMPRESSION = Goaway(ErrorCode.COMPRESSION_ERROR)
_AGENT = 58
"""The index of user-agent."""
_TEST = bytes.fromhex("4950 9f".replace(" ", ""))
"""`test` in the code of Huffman."""
assert decode_huffman(_TEST) == b"test"


def _wrong(section: str, name: str, field: bytes) -> Case:
    return Case(section, name, (block(1, GET_BLOCK + field), _COMPRESSION))


WRONG = [
    _wrong("hpack 2.3.3", "an index beyond the table", b"\xc6"),
    _wrong("hpack 2.3.3", "a name's index beyond the table", b"\x7f\x07\x04test"),
    _wrong("hpack 4.2", "an update of the table's size at the end", b"\x20"),
    _wrong("hpack 5.2", "Huffman padding longer than 7 bits", b"\0\x85\xf2\xb2\x4a\x84\xff\x84\x49\x50\x9f\xff"),
    _wrong("hpack 5.2", "Huffman padding of zeros", b"\0\x85\xf2\xb2\x4a\x84\xff\x83\x49\x50\x90"),
    _wrong("hpack 5.2", "Huffman EOS", b"\0\x85\xf2\xb2\x4a\x84\xff\x87\x49\x50\x9f\xff\xff\xff\xfc"),
    _wrong("hpack 6.1", "index 0", b"\x80"),
    Case("hpack 6.3", "a table larger than announced", (block(1, b"\x3f\xe2\x1f" + GET_BLOCK), _COMPRESSION)),
]


def _right(name: str, field: bytes) -> Case:
    return Case("generic 5", name, (block(1, GET_BLOCK + field), Answered(1)))


def _forms(name: str, first: int, bits: int) -> list[Case]:
    """A literal field in four forms; `bits` are those of the name's index."""
    largest = (1 << bits) - 1
    index = bytes([first | min(_AGENT, largest)]) + (bytes([_AGENT - largest]) if largest <= _AGENT else b"")
    plain, packed = b"\x04test", b"\x83" + _TEST
    return [
        _right(f"{name}, name by index", index + plain),
        _right(f"{name}, name by index, Huffman", index + packed),
        _right(f"{name}, new name", bytes([first]) + plain + plain),
        _right(f"{name}, new name, Huffman", bytes([first]) + packed + packed),
    ]


RIGHT = [
    _right("a field by index", b"\x90"),
    *_forms("with indexing", 0x40, 6),
    *_forms("without indexing", 0x00, 4),
    *_forms("never indexed", 0x10, 4),
    Case("generic 5", "an update of the table's size", (block(1, b"\x3e" + GET_BLOCK), Answered(1))),
    Case("generic 5", "two updates of the table's size", (block(1, b"\x20\x3e" + GET_BLOCK), Answered(1))),
]

CASES = [*WRONG, *RIGHT]
