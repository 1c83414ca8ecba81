from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from msx_frontend.config import ServerConfig, ServerConfigError
from msx_frontend.keys.api_keys_file import KeysFileError
from msx_frontend.keys.opening import open_keys
from tests.loops import run


def test_a_key_beside_an_open_server_is_a_contradiction(tmp_path: Path) -> None:
    config = ServerConfig(disable_token_authorization=True)
    with pytest.raises(ServerConfigError, match=r"MSX_API_KEY: is set, but with disable_token_authorization=true"):
        open_keys(config, tmp_path / "key_file.json", {"MSX_API_KEY": "k" * 20})
    opened = open_keys(config, tmp_path / "key_file.json", {})
    assert (opened.tokens, opened.named) == (None, False)


def test_a_start_that_fails_leaves_no_key_file(tmp_path: Path) -> None:
    with pytest.raises(KeysFileError):
        open_keys(ServerConfig(api_keys_file=tmp_path / "gone"), tmp_path / "key_file.json", {})
    assert not list(tmp_path.iterdir())


def test_closing_removes_the_made_keys_and_ends_the_watch(tmp_path: Path) -> None:
    """It may be called again."""
    given = tmp_path / "keys.json"
    given.write_text('{"keys": []}')
    given.chmod(0o600)

    async def test() -> None:
        opened = open_keys(ServerConfig(api_keys_file=given), tmp_path / "key_file.json", {})
        opened.watch()
        assert (tmp_path / "key_file.json").exists()
        for _ in range(2):
            await opened.close()
            assert [path.name for path in tmp_path.iterdir()] == ["keys.json"]
            assert "api-keys-file" not in {task.get_name() for task in asyncio.all_tasks()}

    run(test())


@pytest.mark.parametrize(
    ("file", "env", "named"), [(True, {}, True), (False, {"MSX_API_KEY": "k" * 20}, True), (False, {}, False)]
)
def test_keys_have_names_where_an_operator_gives_some_or_may(
    tmp_path: Path, file: bool, env: dict[str, str], named: bool
) -> None:
    given = tmp_path / "keys.json"
    given.write_text('{"keys": []}')
    given.chmod(0o600)
    config = ServerConfig(api_keys_file=given if file else None)
    opened = open_keys(config, tmp_path / "key_file.json", dict(env))
    assert opened.named is named
    run(opened.close())


def test_two_servers_with_one_file_answer_the_same_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a rotation reaches both."""
    monkeypatch.setattr("msx_frontend.keys.operator_keys.EVERY", 0.001)
    path = tmp_path / "keys.json"
    old, new = "old-" + "x" * 20, "new-" + "x" * 20

    def write(*keys: str) -> None:
        entries = ", ".join(f'{{"name": "{key[:3]}", "key": "{key}", "kind": "management"}}' for key in keys)
        aside = tmp_path / "aside"
        aside.write_text(f'{{"keys": [{entries}]}}')
        aside.chmod(0o600)
        aside.rename(path)

    async def test() -> None:
        write(old)
        opened = [
            open_keys(ServerConfig(api_keys_file=path), tmp_path / f"key_file-{number}.json", {}) for number in (1, 2)
        ]
        for one in opened:
            one.watch()
        tokens = [one.tokens for one in opened if one.tokens is not None]
        kept = [one.check("management", f"Bearer {old}") for one in tokens]
        assert [key.name for key in kept] == ["old", "old"]
        write(new)
        while any(key.until for key in kept):
            await asyncio.sleep(0.001)
        assert [one.check("management", f"Bearer {new}").name for one in tokens] == ["new", "new"]
        for one in opened:
            await one.close()

    run(test())
