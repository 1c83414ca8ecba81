import base64
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from msx_core.service_errors import InvalidKey
from msx_frontend.keys import locked_file
from msx_frontend.keys.tokens import TokenFileError, Tokens

REFUSED = "Token Authorization failed. Token either incorrect, expired, or not provided correctly"
NO_API_KEY = "Token Authentication failed. Token either incorrect, expired, or not provided correctly"


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "key_file.json"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tokens(path: Path, clock: Clock) -> Iterator[Tokens]:
    tokens = Tokens(path, 60, clock)
    yield tokens
    tokens.close()


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def bearer(path: Path, kind: str) -> str:
    return f"Bearer {read(path)[kind]['key']}"


def test_the_file_is_torchserves_and_private(path: Path, tokens: Tokens, clock: Clock) -> None:
    found = read(path)
    assert list(found) == ["management", "inference", "API"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    texts = [found[kind]["key"] for kind in found]
    assert len(set(texts)) == 3
    assert all(8 * len(base64.urlsafe_b64decode(text)) >= 128 for text in texts)
    assert list(found["API"]) == ["key"]
    moment = found["inference"]["expiration time"]
    assert moment.endswith("Z")
    assert datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp() == clock.now + 3600
    assert os.listdir(path.parent) == ["key_file.json"]


@pytest.mark.parametrize("kind", ["inference", "management"])
def test_each_key_opens_its_own_door_only(path: Path, tokens: Tokens, kind: Any) -> None:
    tokens.check(kind, bearer(path, kind))
    for other in {"inference", "management", "API"} - {kind}:
        with pytest.raises(InvalidKey) as info:
            tokens.check(kind, bearer(path, other))
        assert info.value.message == REFUSED


def test_what_is_a_bearer_header_and_what_is_not(path: Path, tokens: Tokens) -> None:
    key = read(path)["inference"]["key"]
    tokens.check("inference", f"Bearer \t {key}")
    for scheme in ("bearer", "BEARER", "bEARER"):
        tokens.check("inference", f"{scheme} {key}")
    for header in (
        None,
        "",
        key,
        f"Bearer{key}",
        f"Bearer {key} x",
        f"Bearer {key}\n",
        "Bearer \udce9",
        f"Basic {key}",
        f"bearer {key.swapcase()}",
    ):
        with pytest.raises(InvalidKey):
            tokens.check("inference", header)


def test_a_key_expires(path: Path, tokens: Tokens, clock: Clock) -> None:
    header = bearer(path, "inference")
    clock.now += 3599
    tokens.check("inference", header)
    clock.now += 1
    with pytest.raises(InvalidKey):
        tokens.check("inference", header)


def test_a_new_key_by_the_api_key(path: Path, tokens: Tokens, clock: Clock) -> None:
    before = read(path)
    old = bearer(path, "inference")
    clock.now += 1_000_000
    tokens.regenerate("inference", bearer(path, "API"))
    after = read(path)
    assert (after["management"], after["API"]) == (before["management"], before["API"])
    assert after["inference"]["expiration time"] > before["inference"]["expiration time"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    tokens.check("inference", bearer(path, "inference"))
    with pytest.raises(InvalidKey):
        tokens.check("inference", old)


def test_no_new_key_without_the_api_key_or_for_no_kind(path: Path, tokens: Tokens) -> None:
    before = path.read_text()
    attempts = [("inference", bearer(path, "management")), ("inference", None)]
    attempts += [(kind, bearer(path, "API")) for kind in ("API", "x", "")]
    for kind, header in attempts:
        with pytest.raises(InvalidKey) as info:
            tokens.regenerate(kind, header)
        assert info.value.message == NO_API_KEY
    assert path.read_text() == before


def test_the_old_key_stays_good_when_the_new_one_cannot_be_written(
    path: Path, tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = bearer(path, "inference")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(TokenFileError, match=r"key_file\.json: the key file cannot be written: No space left"):
        tokens.regenerate("inference", bearer(path, "API"))
    tokens.check("inference", header)
    assert os.listdir(path.parent) == ["key_file.json"]


@pytest.mark.parametrize("regenerated", [False, True])
def test_a_second_server_in_the_folder_is_told_so(path: Path, tokens: Tokens, regenerated: bool) -> None:
    if regenerated:
        tokens.regenerate("management", bearer(path, "API"))
    before = path.read_text()
    with pytest.raises(TokenFileError) as info:
        Tokens(path, 60)
    assert str(info.value) == (
        f"{path} belongs to a server that is running: stop it, or start this one in another folder"
    )
    assert path.read_text() == before
    assert os.listdir(path.parent) == ["key_file.json"]


def test_the_file_of_a_server_that_was_killed_is_taken_over(path: Path) -> None:
    code = f"""
import os, signal
from pathlib import Path
from msx_frontend.keys.tokens import Tokens
tokens = Tokens(Path({str(path)!r}), 60)
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    dead = bearer(path, "inference")
    tokens = Tokens(path, 60)
    tokens.check("inference", bearer(path, "inference"))
    with pytest.raises(InvalidKey):
        tokens.check("inference", dead)
    tokens.close()


def test_close_removes_the_file_and_frees_the_folder(path: Path, tokens: Tokens) -> None:
    tokens.close()
    tokens.close()
    assert not path.exists()
    Tokens(path, 60).close()


def test_close_leaves_a_file_that_is_not_its_own(path: Path, tokens: Tokens) -> None:
    path.unlink()
    other = Tokens(path, 60)
    tokens.close()
    assert path.exists()
    other.close()


def test_a_link_in_place_of_the_file_is_not_followed(path: Path) -> None:
    victim = path.with_name("victim")
    victim.write_text("mine")
    path.symlink_to(victim)
    with pytest.raises(TokenFileError, match=r"key_file\.json: the key file cannot be written"):
        Tokens(path, 60)
    assert victim.read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(TokenFileError, match=r"gone/key_file\.json: the key file cannot be written: No such file"):
        Tokens(tmp_path / "gone" / "key_file.json", 60)


def test_a_file_that_is_replaced_while_it_is_looked_at_is_looked_at_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock on a file that has lost its name would keep no other server away."""
    path.write_text("{}")
    replaced: list[int] = []

    def lock(fd: int) -> bool:
        if not replaced:
            replaced.append(fd)
            (path.parent / "new").write_text("{}")
            os.replace(path.parent / "new", path)
        return real(fd)

    real = locked_file._lock
    monkeypatch.setattr(locked_file, "_lock", lock)
    tokens = Tokens(path, 60)
    tokens.check("inference", bearer(path, "inference"))
    with pytest.raises(TokenFileError, match="belongs to a server that is running"):
        Tokens(path, 60)
    tokens.close()
    assert not path.exists()


def test_of_two_servers_that_start_at_once_the_second_is_told_so(path: Path) -> None:
    first: list[locked_file.LockedFile] = []

    def text_after(left: bytes | None) -> str:
        """The other server has its file before this one writes its own."""
        first.append(locked_file.LockedFile(path, lambda left: "first"))
        return "second"

    with pytest.raises(TokenFileError, match="belongs to a server that is running"):
        locked_file.LockedFile(path, text_after)
    assert path.read_text() == "first"
    first[0].close()


def test_a_file_that_keeps_changing_does_not_hang_the_start(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.touch()
    monkeypatch.setattr(os.path, "samestat", lambda *_: False)
    with pytest.raises(TokenFileError, match="keeps changing"):
        Tokens(path, 60)


def test_a_key_that_never_expires(path: Path, clock: Clock) -> None:
    tokens = Tokens(path, 0, clock)
    assert [list(entry) for entry in read(path).values()] == [["key"]] * 3
    clock.now += 1e9
    tokens.check("inference", bearer(path, "inference"))
    tokens.close()


def test_an_api_key_is_good_for_nothing_else_and_is_told(path: Path, tokens: Tokens) -> None:
    assert tokens.regenerate("inference", bearer(path, "API")).kinds == {"API"}


# -- keys that are kept --


def test_kept_keys_survive_a_restart(path: Path, clock: Clock) -> None:
    first = Tokens(path, 60, clock, keep=True)
    before = read(path)
    first.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    clock.now += 1000
    second = Tokens(path, 60, clock, keep=True)
    assert read(path) == before
    second.check("inference", f"Bearer {before['inference']['key']}")
    second.regenerate("inference", bearer(path, "API"))
    second.close()
    clock.now += 3000
    third = Tokens(path, 60, clock, keep=True)
    after = read(path)
    assert after["API"] == before["API"]
    assert after["management"]["key"] != before["management"]["key"], "it has expired"
    assert after["inference"]["expiration time"] > before["inference"]["expiration time"]
    third.check("inference", bearer(path, "inference"))
    third.close()
    Tokens(path, 60, clock).close()
    assert not path.exists()


@pytest.mark.parametrize(
    "left",
    [
        "",
        "[]",
        '{"inference": 5}',
        '{"inference": {"key": 7}}',
        '{"inference": {"key": "8chars__"}}',
        '{"inference": {"key": "%s", "expiration time": "soon"}}' % ("k" * 24),
    ],
)
def test_what_is_not_a_key_is_not_kept_and_told(
    path: Path, clock: Clock, left: str, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_text(left)
    path.chmod(0o600)
    tokens = Tokens(path, 60, clock, keep=True)
    (said,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    assert said.startswith(f"keep_tokens: {path} has no key for management, inference, API that can be used")
    assert ("the file is empty" in said) == (left == "")
    assert all(len(entry["key"]) == 24 and entry["key"] != "k" * 24 for entry in read(path).values())
    tokens.close()


@pytest.mark.parametrize("mode", [0o644, 0o620, 0o640])
def test_keys_that_others_could_see_or_write_are_not_kept(
    path: Path, clock: Clock, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    Tokens(path, 60, clock, keep=True).close()
    before = read(path)
    path.chmod(mode)
    assert not caplog.records
    tokens = Tokens(path, 60, clock, keep=True)
    assert "others could read or write it" in caplog.text
    assert not [kind for kind, entry in read(path).items() if entry["key"] == before[kind]["key"]]
    tokens.close()


def test_no_key_is_in_a_repr(path: Path, tokens: Tokens) -> None:
    shown = repr(vars(tokens))
    assert not [kind for kind, entry in read(path).items() if entry["key"] in shown]
