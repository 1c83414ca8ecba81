"""Keys that change while the server runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from msx_core.service_errors import InvalidKey, ModelNotAllowed, TooManyRequests
from msx_frontend.keys.api_keys_file import KeysFileError
from msx_frontend.keys.operator_keys import KeyVariableError, OperatorKeys
from msx_frontend.keys.tokens import Tokens

OLD, NEW, OTHER = "old-" + "x" * 20, "new-" + "x" * 20, "other-" + "x" * 20


class Bench:
    """As Kubernetes mounts a Secret: `..data` is a link to a folder, which is swapped, and the file a link into it."""

    def __init__(self, folder: Path, env: dict[str, str] | None = None) -> None:
        self.folder, self.path = folder, folder / "keys.yaml"
        self._generation = 0
        self.path.symlink_to("..data/keys.yaml")
        self.swap(OLD)
        self.tokens = Tokens(folder / "key_file.json", 60)
        self.env = {} if env is None else env
        self.given = OperatorKeys(self.path, self.env, self.tokens.give)

    def swap(self, *keys: str, **more: object) -> None:
        entries = [{"name": key.partition("-")[0], "key": key, "kind": "inference", **more} for key in keys]
        self.put(json.dumps({"keys": entries}))

    def put(self, text: str) -> None:
        self._generation += 1
        target = self.folder / f"..{self._generation}"
        target.mkdir()
        (target / "keys.yaml").write_text(text)
        (target / "keys.yaml").chmod(0o600)
        (self.folder / "..new").symlink_to(target.name)
        os.replace(self.folder / "..new", self.folder / "..data")

    def look(self) -> None:
        self.given.look(self.path)

    def opens(self, key: str) -> bool:
        try:
            self.tokens.check("inference", f"Bearer {key}")
        except InvalidKey:
            return False
        return True


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_swapped_link_is_seen(bench: Bench) -> None:
    assert (bench.opens(OLD), bench.opens(NEW)) == (True, False)
    bench.swap(OLD, NEW)
    bench.look()
    assert (bench.opens(OLD), bench.opens(NEW)) == (True, True)
    bench.swap(NEW)
    bench.look()
    assert (bench.opens(OLD), bench.opens(NEW)) == (False, True)


def test_a_key_that_is_gone_ends_also_where_it_was_kept(bench: Bench) -> None:
    kept = bench.tokens.check("inference", f"Bearer {OLD}")
    bench.swap(NEW)
    bench.look()
    assert kept.until == 0.0


def test_a_key_that_stays_keeps_what_it_has_used_up(bench: Bench) -> None:
    bench.swap(OLD, rate=0.001)
    bench.look()
    before = bench.tokens.check("inference", f"Bearer {OLD}")
    before.take()
    bench.swap(OLD, NEW, rate=0.001)
    bench.look()
    after = bench.tokens.check("inference", f"Bearer {OLD}")
    assert after is before
    with pytest.raises(TooManyRequests, match=r'The key "old" is above its rate of 0.001 per second \(api_keys_file\)'):
        after.take()


def test_what_a_key_is_for_changes_too(bench: Bench) -> None:
    bench.swap(OLD, models=["a"])
    bench.look()
    with pytest.raises(ModelNotAllowed, match=r'The key "old" is not for model b, but for: a \(api_keys_file\)'):
        bench.tokens.check("inference", f"Bearer {OLD}").check_model("b")


def test_a_change_in_place_within_a_tick_of_the_clock(bench: Bench) -> None:
    found = bench.path.stat()
    bench.path.write_text(bench.path.read_text().replace(OLD, OTHER[:24]))
    os.utime(bench.path, ns=(found.st_atime_ns, found.st_mtime_ns))
    bench.look()
    assert (bench.opens(OLD), bench.opens(OTHER[:24])) == (False, True)


@pytest.mark.parametrize("text", ["keys: 1", "keys: [", '{"keys": [{"name": "a", "key": "x y"}]}'])
def test_what_cannot_be_used_is_told_once_and_the_keys_stay(
    bench: Bench, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    bench.put(text)
    for _ in range(3):
        bench.look()
    assert bench.opens(OLD)
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 1
    assert str(bench.path) in errors[0]
    assert errors[0].endswith(". The keys that it had before stay as they were.")
    bench.swap(NEW)
    bench.look()
    assert (bench.opens(OLD), bench.opens(NEW)) == (False, True)


def test_a_file_that_is_gone_for_a_while(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    os.rename(bench.path, bench.folder / "away")
    bench.look()
    bench.look()
    assert bench.opens(OLD)
    os.rename(bench.folder / "away", bench.path)
    bench.look()
    os.unlink(bench.path)
    bench.look()
    assert [record.getMessage().count("No such file") for record in caplog.records if record.levelname == "ERROR"] == [
        1,
        1,
    ]


def test_a_file_that_cannot_be_used_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(KeysFileError, match="cannot be read"):
        OperatorKeys(tmp_path / "gone", {}, lambda keys: None)


def test_names_are_logged_and_values_are_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    bench = Bench(tmp_path)
    bench.swap(NEW, "short-x")
    bench.look()
    assert f"keys of {bench.path}: new (inference), short (inference)" in caplog.text
    assert f"The key of short in {bench.path} has fewer than 16 characters" in caplog.text
    assert not [key for key in (OLD, NEW, "short-x") if key in caplog.text]


# -- MSX_API_KEY --


def test_the_variable_gives_an_inference_key_and_no_process_inherits_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"MSX_API_KEY": f"{OTHER}\n", "HOME": "/"})
    assert bench.env == {"HOME": "/"}
    assert bench.opens(OTHER)
    assert bench.opens(OLD)
    with pytest.raises(InvalidKey):
        bench.tokens.check("management", f"Bearer {OTHER}")
    bench.swap(NEW)
    bench.look()
    assert bench.opens(OTHER)
    bench.swap(OTHER)
    bench.look()
    assert bench.opens(NEW), "a file with the same key is refused"


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_an_empty_variable_is_none(text: str) -> None:
    assert not OperatorKeys(None, {"MSX_API_KEY": text}, lambda keys: None).any


def test_a_variable_that_is_not_a_key() -> None:
    with pytest.raises(KeyVariableError) as info:
        OperatorKeys(None, {"MSX_API_KEY": "two words"}, lambda keys: None)
    assert str(info.value) == "MSX_API_KEY: is not a text of 1 to 512 printable ASCII characters without spaces"
