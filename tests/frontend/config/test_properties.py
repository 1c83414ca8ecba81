import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_LE
from pathlib import Path

import pytest

from msx_frontend.config import properties
from msx_frontend.config.properties import PropertiesError, expand, parse_properties, read_properties, write_properties


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a=1", {"a": "1"}),
        ("a:1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("  a \t=  1 ", {"a": "1 "}),
        ("a = = 1", {"a": "= 1"}),
        ("a=http://0.0.0.0:8080", {"a": "http://0.0.0.0:8080"}),
        ("a=http\\://h\\:1\\=x", {"a": "http://h:1=x"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=1", {"": "1"}),
        ("# c\n! c\n\n  # c\na=1", {"a": "1"}),
        ("a=1 # kept", {"a": "1 # kept"}),
        ("a=1,\\\n   2,\\\r\n\t3\nb=4", {"a": "1,2,3", "b": "4"}),
        ("a=1\\\n# kept", {"a": "1# kept"}),
        ("a=1\\", {"a": "1"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("# c \\\na=1", {"a": "1"}),
        ("a\\ b\\=c=1", {"a b=c": "1"}),
        ("a=\\t\\n\\r\\f\\q", {"a": "\t\n\r\fq"}),
        ("a=\\u00e9\\u4e2d", {"a": "é中"}),
        ("a=\\\\u00e9", {"a": "\\u00e9"}),
        ("a=1\ra=2", {"a": "2"}),
        ("a=1\u20282", {"a": "1\u20282"}),
        ("", {}),
    ],
)
def test_pairs(text: str, pairs: dict[str, str]) -> None:
    assert parse_properties(text) == pairs


def test_a_bad_unicode_escape_is_named_with_its_line() -> None:
    with pytest.raises(PropertiesError, match=r"line 2: \\u is not followed by four hexadecimal digits"):
        parse_properties("a=1\nb=\\u12\n")


def test_variables() -> None:
    assert expand("k", "$$A$$/x/$$B$$ $A$ $$", {"A": "1", "B": "2"}) == "1/x/2 $A$ $$"
    with pytest.raises(PropertiesError, match=r"k: the environment variable A of \$\$A\$\$ is not set"):
        expand("k", "$$A$$", {})


def test_files_are_utf8_utf16_or_latin1(tmp_path: Path) -> None:
    """UTF-16 is what `>` of Windows PowerShell and some editors write."""
    path = tmp_path / "config.properties"
    utf16 = (BOM_UTF16_LE + "a=é".encode("utf-16-le"), BOM_UTF16_BE + "a=é".encode("utf-16-be"))
    for data in ("a=é".encode(), b"\xef\xbb\xbfa=\xc3\xa9", b"a=\xe9", *utf16):
        path.write_bytes(data)
        assert read_properties(path, {}) == {"a": "é"}


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "config.properties"
    with pytest.raises(PropertiesError, match=r"config\.properties: cannot be read: No such file"):
        read_properties(path, {})
    path.write_text("a=$$NOT_THERE$$")
    with pytest.raises(PropertiesError, match=r"config\.properties: a: the environment variable NOT_THERE"):
        read_properties(path, {})


def test_what_is_written_has_javas_form() -> None:
    text = write_properties({"b c": "x y", "a": '{"m": "C:\\d"}\n#!=\t\r\f', "lead": "  two"}, "Saving snapshot")
    comment, date, *lines = text.splitlines()
    assert comment == "#Saving snapshot"
    assert re.fullmatch(r"#\w{3} \w{3} \d\d \d\d:\d\d:\d\d \S+ \d{4}", date)
    assert lines == [
        r'a={"m"\: "C\:\\d"}\n\#\!\=\t\r\f',
        r"b\ c=x y",
        r"lead=\  two",
    ]


@pytest.mark.parametrize("value", ["", " ", "a\\", "\\u0041", "ünï\U0001f600", "a\nb=c", "#x", "!", "k:v"])
def test_what_is_written_is_read_again(value: str) -> None:
    read = parse_properties(write_properties({"key": value, f"k{value}": "x"}, "c"))
    assert read == {"key": value, f"k{value}": "x"}


@pytest.mark.parametrize(
    "data", ["a=1".encode("utf-16-le"), "a=1".encode("utf-16-be"), BOM_UTF32_LE + "a=1".encode("utf-32-le")]
)
def test_a_file_that_is_no_text_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "config.properties"
    path.write_bytes(data)
    with pytest.raises(
        PropertiesError, match=r"config.properties: is not text: it has NUL characters.*save it as UTF-8"
    ):
        read_properties(path, {})


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(properties, "MOST_BYTES", 1 << 20)
    path = tmp_path / "config.properties"
    path.write_bytes(b"#" * (1 << 20))
    assert read_properties(path, {}) == {}
    path.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(PropertiesError, match=r"config.properties: has more than 1 MiB"):
        read_properties(path, {})
