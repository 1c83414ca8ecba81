"""Values of inputs over REST, and what is refused of them."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import pytest

from msx_core.elements import DEFAULT, limit_to
from msx_core.packed import OneBytes, OneText
from tests.compat.mindspore_serving.family.fakes import FakeServables, ask_rest, plain


def sent(value: bytes) -> Any:
    """Input of the worker for one value, written in JSON."""
    fake = FakeServables()
    ask_rest(fake, b'{"instances":{"x":%b}}' % value)
    return fake.seen[0]["x"]


def f32(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


VALUES: list[tuple[bytes, Any]] = [
    (b"3", ("int32", (), b"\3\0\0\0")),
    (b"-1", ("int32", (), b"\xff\xff\xff\xff")),
    (b"2147483647", ("int32", (), b"\xff\xff\xff\x7f")),
    (b"0.1", ("float32", (), f32(0.1))),
    (b"1e2", ("float32", (), f32(100))),
    (b"3.4028235e38", ("float32", (), f32(3.4028235e38))),
    (b"18446744073709551616", ("float32", (), f32(2.0**64))),
    (b"true", ("bool", (), b"\1")),
    (b'"a"', "a"),
    (b'""', ""),
    (b'["a"]', ["a"]),
    (b"[1,2]", ("int32", (2,), b"\1\0\0\0\2\0\0\0")),
    (b"[[1.5],[2.5]]", ("float32", (2, 1), f32(1.5, 2.5))),
    (b"[1e30,18446744073709551616]", ("float32", (2,), f32(1e30, 2.0**64))),
    (b"[340282346638528859811704183484516925440]", ("float32", (1,), f32(3.4028234663852886e38))),
    (b"[true,false]", ("bool", (2,), b"\1\0")),
    (b'{"b64":""}', b""),
    (b'{"b64":"AAE="}', b"\0\1"),
    (b'{"b64":"AAF="}', b"\0\1"),
    (b'{"b64":"AA\\r\\nE=\\n"}', b"\0\1"),
    (b'{"b64":" AAE=","type":"int8","shape":[2]}', ("int8", (2,), b"\0\1")),
    (b'{"b64":"AAE=","shape":[1]}', [b"\0\1"]),
    (b'{"b64":"w6Q=","type":"str"}', "ä"),
    (b'{"b64":"w6Q=","type":"str","shape":[1]}', ["ä"]),
    (b'[{"b64":"AAE="}]', [b"\0\1"]),
    (b'[{"b64":"w6Q=","type":"str","more":1}]', ["ä"]),
    (b'{"b64":"AAE=","type":"int8","shape":[2]}', ("int8", (2,), b"\0\1")),
    (b'{"b64":"AAE=","type":"fp16"}', ("float16", (), b"\0\1")),
    (b'{"b64":"AAE=","type":"bool","shape":[1,2]}', ("bool", (1, 2), b"\0\1")),
    (b'{"b64":"","type":"fp32","shape":[2,0]}', ("float32", (2, 0), b"")),
]


@pytest.mark.parametrize(("json", "value"), VALUES)
def test_values(json: bytes, value: Any) -> None:
    assert plain(sent(json)) == value


def test_texts_in_arrays_keep_their_shape() -> None:
    assert type(sent(b'["a"]')) is OneText
    assert type(sent(b'[{"b64":""}]')) is OneBytes


def told(document: bytes, target: str = "/model/any:same") -> str:
    text = msgspec.json.decode(ask_rest(FakeServables(), document, target))
    assert [*text] == ["error_msg"]
    message: str = text["error_msg"]
    return message


DOCUMENTS = [
    (b"[]", "key 'instances' expects to exist once, but actually 0 times"),
    (b'{"other":1}', "key 'instances' expects to exist once, but actually 0 times"),
    (b'{"instances":1}', "instances no key mode is not supported"),
    (b'{"instances":null}', "instances no key mode is not supported"),
    (b'{"instances":[1,{}]}', "instances no key mode is not supported"),
    (b'{"instances":[]}', "instances value is array type, but no value"),
    (b'{"instances":{}}', "json object, value is empty"),
    (b'{"instances":[{"x":1},1]}', "json array, instance is not object type"),
    (b'{"instances":[{}]}', "json array, instance is object type, but no value"),
    (b'{"instances":[{"":1}]}', "string key is empty"),
]


@pytest.mark.parametrize(("document", "message"), DOCUMENTS)
def test_documents_that_are_refused(document: bytes, message: str) -> None:
    assert told(document) == f"Parser request failed, {message}"


OVER = '[{"b64":"AAAA","shape":[1],"type":"str","x":1}]'
BEYOND_FLOAT32 = (
    "which numbers with a fraction, or beyond 64 bits, are: "
    "send it as {'b64': ..., 'type': 'float64', 'shape': ...}, or over gRPC"
)
BAD_VALUES = [
    (b"null", "json value is null, it is not supported"),
    (b"[]", "json array, shape is empty"),
    (b"[[]]", "json array, data type is unknown"),
    (b"[null]", "json array, data type is unknown"),
    (b'[{"b64":"","type":"other"}]', "json array, data type is unknown"),
    (b'[{"type":"str"}]', "json array, data type is unknown"),
    (b'["a","b"]', "json array, string or bytes type only support one item"),
    (b'[{"b64":""},{"b64":""}]', "json array, string or bytes type only support one item"),
    (
        b'[{"b64":"","type":"int8"}]',
        "json array, item is object type, object only support string or bytes type",
    ),
    (b"[[1,2],[3]]", "invalid json array: json size is 1, the dim 1 expected to be 2"),
    (b"[[1,2],3]", "invalid json array: json type is not array"),
    (b"[1,null]", "json array, data should be number, bool, string or bytes"),
    (b"[1,[2]]", "json array, data should be number, bool, string or bytes"),
    (b"[1,{}]", "json array, data should be number, bool, string or bytes"),
    (b"[1,2.5]", "json array, elements type is not equal"),
    (b"[1.0,2]", "json array, elements type is not equal"),
    (b"[true,1]", "json array, elements type is not equal"),
    (b'[1,"a"]', "json array, elements type is not equal"),
    *(
        (wide, f"json number {digits} is outside of float32, {BEYOND_FLOAT32}")
        for wide, digits in (
            (b"9" * 40, "9" * 40),
            (b"1e300", "1e+300"),
            (b"[1.5,-3.4028236e38]", "-3.4028236e+38"),
            (b"-" + b"9" * 40, "-" + "9" * 40),
            (b"[1.5," + b"9" * 40 + b"]", "9" * 40),
            (b"[" + b"9" * 4000 + b"]", "9" * 192 + "..." + "9" * 192),
        )
    ),
    (b"[" * 33 + b"1" + b"]" * 33, "an array may have 32 dimensions, but this one has 33"),
    (b"{}", "json object, value is empty"),
    (
        b'{"b64":"","type":"str","shape":[],"x":1}',
        "json object, items size is more than 3, only support specified ['b64', 'type', 'shape']",
    ),
    (b'{"a":1,"b64":2}', "json object, key is not ['b64', 'type', 'shape'], fail key:a"),
    (b'{"b64":"","type":1}', "json object, key is 'type', value should be string type"),
    (b'{"b64":"","type":"Int8"}', "json object, specified type:'Int8' is illegal"),
    (b'{"b64":"","shape":1,"type":1}', "json object, key is 'shape', value should be array type"),
    *(
        (b'{"b64":"","shape":[%b]}' % bad, "json object, key is 'shape', array value should be unsigned integer")
        for bad in (b"-1", b"1.5", b'"a"', b"true", b"[1]")
    ),
    (b'{"b64":"","shape":[0,2]}', "json object, key is 'shape', invalid shape value [0,2]"),
    (
        b'{"b64":"","shape":[2147483648]}',
        "json object, key is 'shape', number value should not be negative number, shape value: [2147483648]",
    ),
    (b'{"type":"str"}', "json object, 'b64' should be specified only one time"),
    (
        b'{"b64":"","shape":[2]}',
        "json object, only support scalar when data type is string or bytes, please check 'type' or 'shape'",
    ),
    (b'{"b64":1}', "get scalar data failed, type is string, but json is not string type"),
    (b'{"b64":"AAA"}', "'AAA' is illegal b64 encode string"),
    *(
        (b'{"b64":"%b"}' % bad, "decode base64 failed, size is not matched.")
        for bad in (b"AA=A", b"AAA-", b"=AAA", b"A===", b"====", b"AA A", b"A-AA", b"AA\\nA")
    ),
    (
        b'{"b64":"AAE=","type":"fp16","shape":[2]}',
        "size is not matched, decode base64 size:2; Given info: type:float16; type size:2; element nums:2",
    ),
    (
        b'{"b64":"","type":"int8"}',
        "size is not matched, decode base64 size:0; Given info: type:int8; type size:1; element nums:1",
    ),
    (
        b'{"b64":"/w==","type":"str"}',
        "json object, the value of 'b64' is not UTF-8, but 'type' is 'str': use 'bytes'",
    ),
    (
        b"[2147483648]",
        "json number 2147483648 is outside of int32, which integers are: "
        "send it as {'b64': ..., 'type': 'int64', 'shape': ...}, or over gRPC",
    ),
]


@pytest.mark.parametrize(("json", "message"), BAD_VALUES)
def test_values_that_are_refused(json: bytes, message: str) -> None:
    assert told(b'{"instances":{"x":%b}}' % json) == f"Parser request failed, {message}"


@pytest.mark.parametrize("json", [b'[["a"]]', b'{"b64":"","shape":[1,1]}'])
def test_a_text_of_two_dimensions(json: bytes) -> None:
    detail = "Instance tensor check failed: bytes or string type input  shape can only be (1,) or empty"
    assert told(b'{"instances":{"x":%b}}' % json) == (
        f"Instances input x check failed, detail: {detail}, but given shape is [1, 1]"
    )


@pytest.mark.parametrize(
    "body",
    [b"{", b"NaN", b"[Infinity]", b"{} x", b"1e400", b'"\xff"', b"[" * 5000, b'{"instances":{"x":"\\ud800"}}', b"\xfe"],
)
def test_what_is_not_json(body: bytes) -> None:
    assert told(body).startswith("Illegal JSON format.")


def test_no_body() -> None:
    assert told(b"") == "http message invalid"


def test_what_is_read_as_it_is_meant() -> None:
    """A byte order mark, other keys, a key twice."""
    fake = FakeServables()
    ask_rest(fake, b'\xef\xbb\xbf{"x":1,"instances":1,"instances":{"x":"a","x":"b"}}')
    assert fake.seen == [{"x": "b"}]


def test_a_long_number_is_quoted_in_part() -> None:
    text = told(b'{"instances":{"x":[1,%b]}}' % (b"9" * 4000))
    assert text.startswith(f"Parser request failed, json number {'9' * 192}...{'9' * 192} is outside of int32")


def test_a_long_value_is_quoted_in_part() -> None:
    text = told(b'{"instances":{"x":{"b64":"%b"}}}' % (b"A" * 1001))
    assert text == f"Parser request failed, '{'A' * 192}...{'A' * 192}' is illegal b64 encode string"


def test_elements_are_counted_before_they_are_made() -> None:
    limit_to(5)
    try:
        assert told(b'{"instances":[{"x":["a","b"]}]}').startswith("json message, it has more than 5 texts, lists")
    finally:
        limit_to(DEFAULT)
