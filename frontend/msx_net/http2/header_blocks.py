"""Header blocks: HPACK (RFC 7541) by the library, its limits, and a memory of blocks that come again."""

from collections.abc import Iterable
from dataclasses import dataclass

from hpack import Decoder, HPACKError, OversizedHeaderListError
from hpack.hpack import decode_integer, encode_integer
from hpack.table import HeaderTable

from msx_net.http2.errors import ConnectionFault, ErrorCode
from msx_net.http2.headers import Headers, content_length, malformed

KEPT_BLOCKS = 64
KEPT_SIZE = 2_048
"""Bytes of a block that is remembered."""

KEPT_LISTS = 1 << 18
"""Bytes of all their lists, as SETTINGS_MAX_HEADER_LIST_SIZE counts: few bytes may name long entries of the table."""

MAX_PARTS = 32
"""Frames of one block."""

MAX_RESIZES = 2
"""Most resizes of the table in one block: the smallest size, and the last (RFC 7541 §4.2)."""

_FIELD = 32
"""Bytes that each field counts beyond its name and value (RFC 9113 §6.5.2)."""

_HARD = 2
"""Times the limit of the list at which decoding itself stops."""


def encode_headers(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A block that leaves the peer's table as it is: it may be kept, sent on any connection, and joined to others."""
    return b"".join(encode_field(name, value) for name, value in headers)


def encode_field(name: bytes, value: bytes) -> bytes:
    """One field of such a block: an entry of the static table, or a literal without indexing (RFC 7541 §6.2.2)."""
    entry = _STATIC.get((name, value))
    if entry is not None:
        return entry
    if len(name) < 127 and len(value) < 127:
        return b"\0%c%b%c%b" % (len(name), name, len(value), value)
    return b"".join([b"\0", encode_integer(len(name), 7), name, encode_integer(len(value), 7), value])


_STATIC = {field: b"%c" % (0x80 | index) for index, field in enumerate(HeaderTable.STATIC_TABLE, 1) if field[1]}


@dataclass(frozen=True)
class RequestBlock:
    """Decoded block. The same block gives the same object: its headers are not to be changed."""

    headers: Headers
    content_length: int | None
    fault: str | None
    """Why it is not a request (RFC 9113 §8.1.1)."""
    size: int
    """As SETTINGS_MAX_HEADER_LIST_SIZE counts it."""


class OpenBlock:
    """A header block that comes in several frames."""

    __slots__ = ("_limit", "_parts", "_size", "ended", "stream_id")

    def __init__(self, stream_id: int, ended: bool, first: bytes, max_list: int) -> None:
        """`max_list`: the limit of a header list, of which no sensible block is longer than twice as much."""
        self.stream_id, self.ended = stream_id, ended
        self._parts = [first]
        self._size = len(first)
        self._limit = max_list

    def add(self, part: bytes) -> None:
        """Raises ConnectionFault (CVE-2024-27316)."""
        self._parts.append(part)
        self._size += len(part)
        if self._size > _HARD * self._limit or len(self._parts) > MAX_PARTS:
            text = f"A header block is much longer than a header list may be ({self._limit} bytes): send fewer headers."
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, text)

    def whole(self) -> bytes:
        return b"".join(self._parts)


class HeaderBlocks:
    """Decoder of one connection: all of its blocks have to come by here, in their order."""

    def __init__(self, max_list: int) -> None:
        self.max_list = max_list
        self._decoder = Decoder(max_header_list_size=_HARD * max_list)
        self._table = self._decoder.header_table = _WatchedTable()
        self._kept: dict[bytes, RequestBlock] = {}
        self._kept_size = 0

    def request(self, block: bytes) -> RequestBlock:
        """Raises ConnectionFault where the block leaves the table unknown."""
        kept = self._kept.get(block)
        return kept if kept is not None else self._decode_request(block)

    def _decode_request(self, block: bytes) -> RequestBlock:
        changes = self._table.changes
        headers = self.decode(block)
        size = sum(_FIELD + len(name) + len(value) for name, value in headers)
        request = RequestBlock(headers, content_length(headers), malformed(headers), size)
        if self._table.changes != changes or _resizes(block):
            self._forget()
        elif len(block) <= KEPT_SIZE:
            self._keep(block, request)
        return request

    def _keep(self, block: bytes, request: RequestBlock) -> None:
        if len(self._kept) >= KEPT_BLOCKS or self._kept_size > KEPT_LISTS:
            self._forget()
        self._kept[block] = request
        self._kept_size += request.size

    def _forget(self) -> None:
        self._kept.clear()
        self._kept_size = 0

    def decode(self, block: bytes) -> Headers:
        """Raises ConnectionFault."""
        try:
            if _resizes(block):
                _check_resizes(block)
            return list(self._decoder.decode(block, raw=True))
        except OversizedHeaderListError:
            text = f"A header list is more than {_HARD} times as long as allowed ({self.max_list} bytes): send fewer."
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, text) from None
        except (HPACKError, IndexError) as error:
            text = f"A header block cannot be decoded: {error}."
            raise ConnectionFault(ErrorCode.COMPRESSION_ERROR, text) from None


class _WatchedTable(HeaderTable):
    """A block that changes the table means something else the next time."""

    def __init__(self) -> None:
        self.changes = 0
        super().__init__()

    def add(self, name: bytes, value: bytes) -> None:
        self.changes += 1
        super().add(name, value)


def _resizes(block: bytes) -> bool:
    """It begins with an update of the table's size (RFC 7541 §6.3), which has to be done each time."""
    return block[:1] != b"" and block[0] & 0xE0 == 0x20


def _check_resizes(block: bytes) -> None:
    """Raises ConnectionFault for more of them than a block may have; what else is wrong with them is hpack's to say."""
    at = count = 0
    while _resizes(block[at : at + 1]):
        count += 1
        if count > MAX_RESIZES:
            text = f"A header block changes the table's size more than {MAX_RESIZES} times."
            raise ConnectionFault(ErrorCode.COMPRESSION_ERROR, text)
        at += decode_integer(block[at : at + 10], 5)[1]
