"""Requests that two servers in a row may understand differently, and what must come of each.

After the published research: CL.TE, TE.CL and TE.TE (HTTP desync attacks), ambiguous chunk lines (TERM.EXT, EXT.TERM,
spills), hidden and doubled lengths, and what RFC 9112 says of targets, versions and Host.
"""

from __future__ import annotations

from typing import NamedTuple

END = b"\r\n\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nhost: x" + END
LINE = b"POST /predictions/m HTTP/1.1\r\n"
HOST = b"host: x\r\n"
TE = b"transfer-encoding: chunked\r\n"


class Case(NamedTuple):
    name: str
    sent: bytes
    statuses: tuple[int, ...]
    """Statuses of the replies, in their order."""
    bodies: tuple[bytes, ...] = ()
    """Bodies of the jobs that were made."""
    smuggled: bool = False
    """The second request is one by all readings, and is answered."""


def headers(name: str, lines: bytes, *statuses: int, body: bytes = b"", bodies: tuple[bytes, ...] = ()) -> Case:
    """A request with these further headers, and behind it what an attacker would like to be a request."""
    return Case(name, LINE + HOST + lines + b"\r\n" + body + SMUGGLED, statuses, bodies)


def chunks(name: str, body: bytes, status: int) -> Case:
    return headers(name, TE, status, body=body)


def first_line(name: str, line: bytes, *statuses: int, more: bytes = HOST, bodies: tuple[bytes, ...] = ()) -> Case:
    return Case(name, line + b"\r\n" + more + b"\r\n", statuses, bodies)


TWO_LENGTHS = [
    headers("CL.TE", b"content-length: 5\r\n" + TE, 400, body=b"0" + END),
    headers("TE.CL", TE + b"content-length: 3\r\n", 400, body=b"1\r\na\r\n0" + END),
    headers("TE with CL 0", TE + b"content-length: 0\r\n", 400, body=b"0" + END),
    headers("two equal lengths", b"content-length: 1\r\ncontent-length: 1\r\n", 400, body=b"a"),
    headers("two lengths", b"content-length: 1\r\ncontent-length: 60\r\n", 400, body=b"a"),
    headers("two lengths, one hidden", b"content-length: 1\r\nContent-Length : 60\r\n", 400, body=b"a"),
    headers("a list of equal lengths", b"content-length: 1, 1\r\n", 400, body=b"a"),
    headers("a list of lengths", b"content-length: 1,60\r\n", 400, body=b"a"),
]
BAD_LENGTHS = (
    b"+1",
    b"-1",
    b"0x1",
    b"1 1",
    b"1e0",
    b"1.0",
    b"1;",
    b'"1"',
    b"1\x00",
    b"1\x0b",
    b"\x0b1",
    b"\xb1",
    b"x",
)
TOO_LONG = (b"18446744073709551617", b"99999999999999999999999999")
LENGTHS = [
    headers(f"length {value!r}", b"content-length: " + value + b"\r\n", 400, body=b"a")
    for value in (*BAD_LENGTHS, *TOO_LONG)
]
NO_LENGTHS = [
    headers("an empty length", b"content-length:\r\n", 400),
    headers("a blank length", b"content-length:   \r\n", 400),
]
CODINGS = [
    headers(f"coding {value!r}", b"transfer-encoding: " + value + b"\r\n", status, body=b"0" + END)
    for value, status in (
        (b"xchunked", 501),
        (b"chunkedx", 501),
        (b"identity", 501),
        (b"gzip", 501),
        (b"chunked, identity", 400),
        (b"chunked, gzip", 400),
        (b"gzip, chunked", 501),
        (b"identity, chunked", 501),
        (b"chunked, chunked", 400),
        (b",chunked", 501),
        (b"chunked,", 400),
        (b"chunked;q=1", 501),
        (b'"chunked"', 501),
        (b"\x0bchunked", 400),
        (b"chunked\x00", 400),
        (b"chunked\x0b", 400),
        (b"ch\xfcnked", 501),
        (b"", 400),
    )
]
OBFUSCATED = [
    headers("a space before the colon", b"transfer-encoding : chunked\r\n", 400, body=b"0" + END),
    headers("a tab before the colon", b"transfer-encoding\t: chunked\r\n", 400, body=b"0" + END),
    headers("NUL in a name", b"transfer-encoding\x00: chunked\r\n", 400),
    headers("a vertical tab before a name", b"\x0btransfer-encoding: chunked\r\n", 400),
    headers("a folded line", b"x: y\r\n transfer-encoding: chunked\r\n", 400),
    headers("a folded line by a tab", b"x: y\r\n\ttransfer-encoding: chunked\r\n", 400),
    headers("a folded value", b"transfer-encoding:\r\n chunked\r\n", 400),
    Case("a space before the first header", LINE + b" host: x\r\n" + HOST + b"\r\n", (400,)),
    headers("two codings", TE + b"transfer-encoding: identity\r\n", 400, body=b"0" + END),
    headers("chunked twice", TE + TE, 400, body=b"0" + END),
    headers("a line end inside of a header", b"x: y\ntransfer-encoding: chunked\r\n", 400),
    headers("a carriage return inside of a header", b"x: y\rtransfer-encoding: chunked\r\n", 400),
    headers("carriage returns before a line end", b"x: y\r\r\n", 400),
    headers("NUL in a value", b"x: a\x00b\r\n", 400),
    headers("a control character in a value", b"x: a\x01b\r\n", 400),
    headers("an escape in a value", b"x: a\x1bb\r\n", 400),
    headers("a control character in a name", b"x\x01: a\r\n", 400),
    headers("a letter beyond ASCII in a name", b"x\xe4: a\r\n", 400),
    headers("a bracket in a name", b"x[: a\r\n", 400),
    headers("no name", b": a\r\n", 400),
    headers("no colon", b"transfer-encoding chunked\r\n", 400),
    headers("a name alone", b"x\r\n", 400),
]
BARE_ENDS = [
    Case("a request line with LF", LINE.replace(b"\r", b"") + HOST + b"\r\n", (400,)),
    Case("a request line with CR", LINE.replace(b"\n", b"") + HOST + b"\r\n", (400,)),
    Case("a header with LF", LINE + b"host: x\n\r\n", (400,)),
    Case("LF as the end of a head", LINE + HOST + b"\n", (400,)),
    Case("CR as the end of a head", LINE + HOST + b"\rx", (400,)),
]
BAD_SIZES = (
    b"",
    b" ",
    b"+1",
    b"-1",
    b"0x1",
    b"x",
    b"g",
    b"1 ",
    b" 1",
    b"\t1",
    b"1\t",
    b"1 ;a",
    b"1_0",
    b"\xb1",
    b"1\x00",
    b"1,1",
)
CHUNK_SIZES = [
    chunks(f"chunk size {size!r}", size + b"\r\na\r\n0" + END, 400)
    for size in (*BAD_SIZES, b"1\x0b", b"10000000000000001", b"fffffffffffffffff")
]
CHUNK_LINES = [
    chunks("LF behind a size", b"1\na\r\n0" + END, 400),
    chunks("CR behind a size", b"1\ra\r\n0" + END, 400),
    chunks("LF in an extension (TERM.EXT)", b"1;x\na\r\n0" + END, 400),
    chunks("LF at the beginning of an extension", b"1;\na\r\n0" + END, 400),
    chunks("LF in the extension of the last chunk", b"0;x\n\r\n", 400),
    chunks("CR in an extension", b"1;x\ry\r\na\r\n0" + END, 400),
    chunks("NUL in an extension", b"1;x\x00\r\na\r\n0" + END, 400),
    chunks("LF in a quoted extension", b'1;x="\n"\r\na\r\n0' + END, 400),
    chunks("LF behind the data (EXT.TERM)", b"1\r\na\n0" + END, 400),
    chunks("CR behind the data", b"1\r\na\r0" + END, 400),
    chunks("no line end behind the data", b"1\r\na0" + END, 400),
    chunks("two letters for a line end (a spill)", b"1\r\naXX0" + END, 400),
    chunks("more data than the size says", b"1\r\nab\r\n0" + END, 400),
    chunks("less data than the size says", b"4\r\na\r\n0" + END, 400),
    chunks("a negative last chunk", b"1\r\na\r\n-0" + END, 400),
    chunks("LF behind the last chunk", b"1\r\na\r\n0\n\r\n", 400),
    chunks("LF behind the trailers", b"1\r\na\r\n0\r\nx: y\n\r\n", 400),
    chunks("a folded trailer", b"1\r\na\r\n0\r\nx: y\r\n z\r\n\r\n", 400),
    chunks("a space in a trailer's name", b"1\r\na\r\n0\r\nx : y\r\n\r\n", 400),
    chunks("a length as a trailer", b"1\r\na\r\n0\r\ncontent-length: 60\r\n\r\n", 400),
    chunks("a coding as a trailer", b"1\r\na\r\n0\r\ntransfer-encoding: x\r\n\r\n", 400),
    chunks("Host as a trailer", b"1\r\na\r\n0\r\nhost: z\r\n\r\n", 400),
    chunks("the end of the connection as a trailer", b"1\r\na\r\n0\r\nconnection: close\r\n\r\n", 400),
    chunks("NUL in a trailer", b"1\r\na\r\n0\r\nx: \x00\r\n\r\n", 400),
]


def good(name: str, lines: bytes, body: bytes, seen: bytes) -> Case:
    """Both requests are answered."""
    return headers(name, lines, 200, 200, body=body, bodies=(seen,))._replace(smuggled=True)


def good_chunks(name: str, body: bytes, seen: bytes) -> Case:
    return good(name, TE, body, seen)


UPGRADE = b"connection: upgrade\r\nupgrade: h2c\r\ncontent-length: 1\r\n"
PIPELINES = [
    good("no body", b"", b"", b""),
    good("a body", b"content-length: 1\r\n", b"a", b"a"),
    good("zeros before a length", b"content-length: 001\r\n", b"a", b"a"),
    good("blanks around a length", b"content-length: \t1 \r\n", b"a", b"a"),
    good("letters of any case", b"Transfer-Encoding: ChunKed\r\n", b"0" + END, b""),
    good("a length by another name", b"content_length: 60\r\n", b"", b""),
    good("letters beyond ASCII in a value", b"x: \xe4\r\n", b"", b""),
    good("an upgrade that is declined", UPGRADE, b"a", b"a"),
    good("a request in the body", b"content-length: %d\r\n" % len(SMUGGLED), SMUGGLED, SMUGGLED),
    good_chunks("chunks", b"1\r\na\r\n2\r\nbc\r\n0" + END, b"abc"),
    good_chunks("a size of capitals", b"A\r\n0123456789\r\n0" + END, b"0123456789"),
    good_chunks("zeros before a size", b"0001\r\na\r\n000" + END, b"a"),
    good_chunks("an extension", b'1;x=y;z="a b"\r\na\r\n0;x' + END, b"a"),
    good_chunks("trailers", b"1\r\na\r\n0\r\nx: y\r\n\r\n", b"a"),
    good_chunks("headers as trailers", b"1\r\na\r\n0\r\nauthorization: z\r\nx-request-id: z\r\n\r\n", b"a"),
    good_chunks("a request in a chunk", b"%x\r\n%b\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED), SMUGGLED),
]
LAST = [headers("the end of the connection", b"connection: close\r\n", 200, bodies=(b"",))]
TARGETS = [
    first_line("absolute-form", b"POST http://other:81/predictions/m HTTP/1.1", 200, bodies=(b"",)),
    first_line("authority-form", b"POST x:80 HTTP/1.1", 400),
    first_line("CONNECT", b"CONNECT x:80 HTTP/1.1", 400),
    first_line("an asterisk", b"OPTIONS * HTTP/1.1", 404),
    first_line("no slash", b"POST predictions/m HTTP/1.1", 400),
    first_line("a blank in a target", b"POST /predictions/m /smuggled HTTP/1.1", 400),
    first_line("a tab in a target", b"POST /predictions\t/m HTTP/1.1", 400),
    first_line("NUL in a target", b"POST /predictions/m\x00 HTTP/1.1", 400),
    first_line("a control character in a target", b"POST /predictions/\x01 HTTP/1.1", 400),
    first_line("no target", b"POST HTTP/1.1", 400),
    first_line("two blanks", b"POST  /predictions/m HTTP/1.1", 200, bodies=(b"",)),
    first_line("a small letter in a method", b"post /predictions/m HTTP/1.1", 400),
    first_line("an unknown method", b"SMUGGLE /predictions/m HTTP/1.1", 400),
    first_line("a colon in a method", b"POST: /predictions/m HTTP/1.1", 400),
]
VERSIONS = [
    first_line("HTTP/0.9 by name", b"POST /predictions/m HTTP/0.9", 505),
    Case("HTTP/0.9", b"GET /smuggled\r\n\r\n", (505,)),
    first_line("HTTP/1.0 without Host", b"POST /predictions/m HTTP/1.0", 200, more=b"", bodies=(b"",)),
    Case("HTTP/1.0 with a second request", b"POST /predictions/m HTTP/1.0\r\n\r\n" + SMUGGLED, (200,), (b"",)),
    first_line("HTTP/1.0 with chunks", b"POST /predictions/m HTTP/1.0", 400, more=TE),
    first_line("HTTP/1.2", b"POST /predictions/m HTTP/1.2", 400),
    first_line("HTTP/1.10", b"POST /predictions/m HTTP/1.10", 400),
    first_line("HTTP/2.0", b"POST /predictions/m HTTP/2.0", 505),
    first_line("HTTP/3.0", b"POST /predictions/m HTTP/3.0", 400),
    first_line("http/1.1", b"POST /predictions/m http/1.1", 400),
    first_line("a blank behind the version", b"POST /predictions/m HTTP/1.1 ", 400),
    first_line("a word behind the version", b"POST /predictions/m HTTP/1.1x", 400),
    first_line("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM", 400, more=b""),
]
HOSTS = [
    first_line("no Host", b"POST /predictions/m HTTP/1.1", 400, more=b""),
    first_line("two Hosts", b"POST /predictions/m HTTP/1.1", 400, more=HOST + HOST),
    first_line("two Hosts that differ", b"POST /predictions/m HTTP/1.1", 400, more=HOST + b"Host: y\r\n"),
    first_line("two Hosts with HTTP/1.0", b"POST /predictions/m HTTP/1.0", 400, more=HOST + b"Host: y\r\n"),
    first_line("an absolute target without Host", b"POST http://x/predictions/m HTTP/1.1", 400, more=b""),
    first_line("an empty Host", b"POST /predictions/m HTTP/1.1", 200, more=b"host:\r\n", bodies=(b"",)),
]
BEFORE = [
    Case("a blank before the request line", b" " + LINE + HOST + b"\r\n", (400,)),
    Case("a tab before the request line", b"\t" + LINE + HOST + b"\r\n", (400,)),
    Case("NUL before the request line", b"\x00" + LINE + HOST + b"\r\n", (400,)),
    Case("line ends before the request line", b"\r\n\r\n" + LINE + HOST + b"\r\n", (200,), (b"",)),
    Case("a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", (400,)),
]
CASES = [
    *(*TWO_LENGTHS, *LENGTHS, *NO_LENGTHS, *CODINGS, *OBFUSCATED, *BARE_ENDS, *CHUNK_SIZES, *CHUNK_LINES),
    *(*PIPELINES, *LAST, *TARGETS, *VERSIONS, *HOSTS, *BEFORE),
]
