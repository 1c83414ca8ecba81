"""Which models a server starts with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from msx_frontend.config import ModelDefaults, Snapshot
from msx_frontend.errors import ServiceUnavailable, WorkersNotStarted
from msx_frontend.models.start_account import StartAccount
from msx_frontend.models.startup import StartupError
from msx_frontend.models.states import ModelState
from tests.unit.frontend.house import FakeGroup, House, Test, in_a_house, until
from tests.unit.frontend.packing import pack_model


def before(folder: Path, test: Test, **options: Any) -> None:
    """What an earlier server of this folder did. It is gone, as after a SIGKILL: nothing was unregistered."""
    in_a_house(folder, test, **options)


async def names_of(house: House) -> list[str]:
    return [" ".join(version.labels) for version in house.registry.all_versions()]


# -- the command line --


@pytest.mark.parametrize(
    ("models", "served"),
    [
        ((), []),
        (("none",), []),
        (("",), []),
        (("m.mar",), ["m"]),
        (("m.mar", "n.mar"), ["m", "n"]),
        (("all",), ["m", "n"]),
        (("other=m.mar",), ["other"]),
        (("m.mar", "m.mar"), ["m"]),
    ],
)
def test_models_of_the_command_line(tmp_path: Path, models: tuple[str, ...], served: list[str]) -> None:
    async def test(house: House) -> None:
        house.pack("m")
        house.pack("n")
        await house.start(*models)
        assert house.registry.names() == served
        assert all(version.source.at_startup for version in house.registry.all_versions())
        assert all(version.min_workers == 1 for version in house.registry.all_versions())
        assert {name for name, _ in await house.stored()} == set(served)

    in_a_house(tmp_path, test)


def test_groups_get_their_devices_before_others_share_the_rest(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        house.pack("a")
        house.pack("b", config="parallelType: tp\nmsrun: {nproc-per-node: 2}\nminWorkers: 1\nmaxWorkers: 1\n")
        await house.start("all")
        assert house.devices_of("b") == [(0, 1)]
        assert sorted(house.devices_of("a")) == [(2,), (3,)]

    in_a_house(tmp_path, test, npus=4)


def test_the_versions_of_a_name_keep_their_order(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        (house.pack("m", "1.0")).rename(house.root / "1.mar")
        (house.pack("m", "2.0", config="parallelType: tp\nmsrun: {nproc-per-node: 2}\n")).rename(house.root / "2.mar")
        house.pack("a")
        await house.start("a.mar", "1.mar", "2.mar")
        assert house.registry.find("m").source.version == "1.0"

    in_a_house(tmp_path, test)


def test_a_path_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = pack_model(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path)

    async def test(house: House) -> None:
        await house.start("elsewhere/m.mar", f"n={elsewhere}")
        assert house.registry.names() == ["m", "n"]
        assert {one.url for one in (await house.stored()).values()} == {str(elsewhere)}

    in_a_house(tmp_path, test)


def test_a_path_with_an_equals_sign(tmp_path: Path) -> None:
    odd = tmp_path / "a=b"
    pack_model(odd)

    async def test(house: House) -> None:
        await house.start(str(odd / "m.mar"))
        assert house.registry.names() == ["m"]

    in_a_house(tmp_path, test)


def test_a_link_in_the_store_keeps_its_name(tmp_path: Path) -> None:
    elsewhere = pack_model(tmp_path / "elsewhere")

    async def test(house: House) -> None:
        (house.root / "link.mar").symlink_to(elsewhere)
        await house.start("link.mar")
        assert (await house.stored())["m", "1.0"].url == "link.mar"

    in_a_house(tmp_path, test)


def test_an_archive_that_is_not_there_keeps_the_server_from_starting(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        with pytest.raises(StartupError, match=r"--models x=no\.mar: no\.mar is neither a path nor in the model store"):
            await house.start("x=no.mar")

    in_a_house(tmp_path, test)


@pytest.mark.parametrize(
    ("packed", "model", "told"),
    [
        ("", "x.mar", ", which has no archives"),
        ("ab", "x.mar", ", which has a.mar, b.mar"),
        ("abcdef", "x.mar", ", which has a.mar, b.mar, c.mar, d.mar, e.mar, …"),
        ("a", "start", "; did you mean --start?"),
        ("", "stop", "; did you mean --stop?"),
    ],
)
def test_what_may_have_been_meant(tmp_path: Path, packed: str, model: str, told: str) -> None:
    async def test(house: House) -> None:
        for name in packed:
            house.pack(name)
        with pytest.raises(StartupError) as caught:
            await house.start(model)
        assert str(caught.value).endswith(f"is neither a path nor in the model store {house.root}{told}")

    in_a_house(tmp_path, test)


@pytest.mark.parametrize("models", ["m.mar,n.mar", "m.mar, n.mar,"])
def test_models_of_the_command_line_are_separated_by_spaces(tmp_path: Path, models: str) -> None:
    async def test(house: House) -> None:
        house.pack("m")
        with pytest.raises(StartupError, match=r"; models are separated by spaces: --models m\.mar n\.mar$"):
            await house.start(models)

    in_a_house(tmp_path, test)


def test_an_archive_that_is_damaged_does_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test(house: House) -> None:
        house.pack("m")
        (house.root / "bad.mar").write_bytes(b"PK nonsense")
        await house.start("bad.mar", "m.mar")
        assert house.registry.names() == ["m"]

    in_a_house(tmp_path, test)
    assert any("model bad.mar could not be loaded" in message for message in caplog.messages)


def test_a_model_that_does_not_load_does_not_hold_up_the_start(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        house.pack("m")
        FakeGroup.loading.add("m")
        await house.start("m.mar")
        assert house.registry.names() == ["m"]
        assert house.registry.find("m").ready_workers == 0

    in_a_house(tmp_path, test)


# -- the state --


def test_a_restarted_server_has_the_same_models(tmp_path: Path) -> None:
    async def first(house: House) -> None:
        await house.register("m", "1.0", initial_workers=0)
        await house.register("m", "2.0", batch_size=7, response_timeout=9)
        await house.register("n", "1.0")
        await house.management.set_default("m", "2.0")
        await house.management.scale("m", "2.0", 2, 3, wait=True)

    async def second(house: House) -> None:
        # one archive a name is in the store, so each name has the version that was packed last
        house.pack("m", "2.0")
        await house.start()
        version = house.registry.find("m")
        assert version.labels == ("m", "2.0")
        assert (version.min_workers, version.max_workers) == (2, 3)
        assert (version.config.batch_size, version.config.response_timeout) == (7, 9)
        assert version.source.options["initial_workers"] == 1
        await until(lambda: len(house.groups("m")) == 2)

    before(tmp_path, first)
    in_a_house(tmp_path, second)


def two_versions(house: House) -> list[str]:
    """m 1.0 in a.mar and m 2.0 in b.mar."""
    for name, version in (("a", "1.0"), ("b", "2.0")):
        house.pack("m", version).rename(house.root / f"{name}.mar")
    return ["a.mar", "b.mar"]


@pytest.mark.parametrize("default", ["1.0", "2.0"])
def test_the_default_is_the_same(tmp_path: Path, default: str) -> None:
    async def first(house: House) -> None:
        await house.start(*two_versions(house))
        await house.management.set_default("m", default)

    async def second(house: House) -> None:
        await house.start()
        assert await names_of(house) == ["m 1.0", "m 2.0"]
        assert house.registry.find("m").labels == ("m", default)
        assert {one.version: one.is_default for one in (await house.stored()).values()} == {
            version: version == default for version in ("1.0", "2.0")
        }

    before(tmp_path, first)
    in_a_house(tmp_path, second)


def test_models_of_the_command_line_are_added_to_those_of_the_state(tmp_path: Path) -> None:
    async def first(house: House) -> None:
        await house.register("m")

    async def second(house: House) -> None:
        house.pack("n")
        await house.start("n.mar", "m.mar")
        assert house.registry.names() == ["m", "n"]
        assert len(house.groups("m")) == 1

    before(tmp_path, first)
    in_a_house(tmp_path, second)


@pytest.mark.parametrize("default", ["1.0", "2.0"])
def test_on_another_digest_the_command_line_wins_and_the_default_stays(tmp_path: Path, default: str) -> None:
    async def first(house: House) -> None:
        await house.start(*two_versions(house))
        await house.management.set_default("m", default)
        await house.management.scale("m", "1.0", 3, 3, wait=True)

    async def second(house: House) -> None:
        old = (await house.stored())["m", "1.0"]
        house.pack("m", "1.0", config="batchSize: 9").rename(house.root / "a.mar")
        await house.start("a.mar")
        version = house.registry.find("m", "1.0")
        assert version.config.batch_size == 9
        assert version.source.digest != old.digest
        assert version.min_workers == 1
        assert house.registry.find("m").labels == ("m", default)
        assert (await house.stored())["m", "1.0"].digest == version.source.digest

    before(tmp_path, first)
    in_a_house(tmp_path, second)


def test_models_have_the_age_that_the_state_remembers(tmp_path: Path) -> None:
    """Also one that the command line has with another digest, or a snapshot names."""

    async def first(house: House) -> None:
        for model in ("c", "b", "a"):
            await house.register(model)
        assert house.registry.names_by_age() == ["c", "b", "a"]

    async def second(house: House) -> None:
        house.pack("c", config="batchSize: 9")
        house.pack("new")
        await house.start("new.mar", "c.mar", snapshot=Snapshot({"b": {"1.0": ModelDefaults(mar_name="b.mar")}}))
        assert house.registry.find("c").config.batch_size == 9
        assert house.registry.names_by_age() == ["c", "b", "a", "new"]

    before(tmp_path, first)
    in_a_house(tmp_path, second)


def test_one_that_cannot_be_restored_is_failed_until_it_is_there_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def first(house: House) -> None:
        await house.register("m", initial_workers=2)
        await house.register("n")

    async def second(house: House) -> None:
        stored = await house.stored()
        (house.root / "m.mar").rename(house.root / "away")
        await house.start()
        version = house.registry.find("m")
        assert (version.state, version.min_workers) == (ModelState.FAILED, 2)
        assert version.reason.startswith("Model not found at: m.mar")
        await until(lambda: house.registry.find("n").state is ModelState.READY)
        with pytest.raises(ServiceUnavailable, match=r"m\.mar"):
            house.submit("m")
        assert await house.stored() == stored
        (house.root / "away").rename(house.root / "m.mar")

    async def third(house: House) -> None:
        await house.start()
        await until(lambda: house.registry.find("m").state is ModelState.READY)
        assert house.registry.find("m").min_workers == 2

    before(tmp_path, first)
    before(tmp_path, second)
    (told,) = [message for message in caplog.messages if "could not be restored" in message]
    assert told.startswith("model m 1.0 could not be restored: Model not found")
    assert told.endswith(
        "; it is remembered until it is unregistered (--enable-model-api), or its archive is back at a start"
    )
    in_a_house(tmp_path, third)


def test_one_that_cannot_be_restored_is_taken_from_the_command_line(tmp_path: Path) -> None:
    async def first(house: House) -> None:
        await house.register("m")

    async def second(house: House) -> None:
        (house.root / "m.mar").rename(house.root / "moved.mar")
        await house.start("moved.mar")
        await until(lambda: house.registry.find("m").state is ModelState.READY)
        assert house.registry.find("m").source.url == "moved.mar"

    before(tmp_path, first)
    in_a_house(tmp_path, second)


def test_an_archive_that_is_another_version_now(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def first(house: House) -> None:
        await house.register("m", "1.0")

    async def second(house: House) -> None:
        house.pack("m", "2.0")
        await house.start()
        assert [version.labels for version in house.registry.all_versions()] == [("m", "1.0")]
        assert house.registry.find("m").state is ModelState.FAILED
        assert "holds m 2.0 now; register it anew" in house.registry.find("m").reason
        assert FakeGroup.living == []

    before(tmp_path, first)
    in_a_house(tmp_path, second)
    assert any("holds m 2.0 now; register it anew" in message for message in caplog.messages)


def test_a_registration_by_another_name_and_a_path_of_the_client(tmp_path: Path) -> None:
    async def first(house: House) -> None:
        await house.register("m", url="/on/the/client/m.mar", model_name="other")

    async def second(house: House) -> None:
        await house.start()
        assert house.registry.names() == ["other"]

    before(tmp_path, first)
    in_a_house(tmp_path, second)


def test_restoring_writes_nothing(tmp_path: Path) -> None:
    async def first(house: House) -> None:
        await house.register("m")

    async def second(house: House) -> None:
        stored = await house.stored()
        FakeGroup.failing.add("m")
        await house.start()
        assert await house.stored() == stored

    before(tmp_path, first)
    in_a_house(tmp_path, second)


def test_an_option_of_another_version_of_the_server_does_not_stop_the_start(tmp_path: Path) -> None:
    async def first(house: House) -> None:
        await house.register("m")

    async def second(house: House) -> None:
        (stored,) = (await house.stored()).values()
        newer = msgspec.structs.replace(stored, options={**stored.options, "colour": "red"})
        house.state._store.save_version(newer)
        await house.start()
        assert house.registry.names() == ["m"]

    before(tmp_path, first)
    in_a_house(tmp_path, second)


# -- what a start says --


def test_the_account_of_a_start(tmp_path: Path) -> None:
    async def first(house: House) -> None:
        house.pack("n")
        assert await house.start() == "none"
        await house.register("m")
        await house.register("m", "2.0")
        await house.management.scale("m", "2.0", 2, 4, wait=True)

    async def second(house: House) -> None:
        said = await house.start("n.mar", "m.mar", snapshot=snapshot_of(s=FIVE))
        assert said == (
            "asked for: n 1.0, m 2.0; of the snapshot: s 1.0 (2 to 3 workers); "
            "remembered: m 1.0 (1 worker), m 2.0 (2 to 4 workers)"
        )

    before(tmp_path, first)
    in_a_house(tmp_path, second)


def test_an_account_names_the_first_ones() -> None:
    names = [f"m{number} 1.0" for number in range(12)]
    assert StartAccount(asked=names).text() == f"asked for: {', '.join(names[:10])}, and 2 more"


# -- a snapshot --


def snapshot_of(*, last_known: bool = False, **models: dict[str, Any]) -> Snapshot:
    """Models by name; each has version 1.0."""
    said = {name: {"1.0": msgspec.convert(members, ModelDefaults)} for name, members in models.items()}
    return Snapshot(said, last_known=last_known)


FIVE = {"marName": "m.mar", "defaultVersion": True, "minWorkers": 2, "maxWorkers": 3, "batchSize": 5}


def test_a_snapshot_is_honoured_and_remembered(tmp_path: Path) -> None:
    async def first(house: House) -> None:
        house.pack("m", config="batchSize: 9\nmaxBatchDelay: 40\n")
        await house.start(snapshot=snapshot_of(renamed=FIVE | {"responseTimeout": 7, "startupTimeout": 8}))
        version = house.registry.find("renamed")
        config = version.config
        assert (config.batch_size, config.max_batch_delay) == (5, 40), "it beats the yaml in what it says"
        assert (config.response_timeout, config.startup_timeout) == (7, 8)
        assert (version.min_workers, version.max_workers) == (2, 3)
        assert version.source.at_startup

    async def second(house: House) -> None:
        await house.start()
        assert house.registry.find("renamed").config.batch_size == 5

    before(tmp_path, first)
    in_a_house(tmp_path, second)


@pytest.mark.parametrize(("last_known", "workers"), [(True, 4), (False, 2)])
def test_the_state_is_newer_than_the_last_snapshot_and_yields_to_a_given_one(
    tmp_path: Path, last_known: bool, workers: int
) -> None:
    async def first(house: House) -> None:
        await house.register("m")
        await house.management.scale("m", "1.0", 4, 4, wait=True)

    async def second(house: House) -> None:
        house.pack("n")
        await house.start(snapshot=snapshot_of(last_known=last_known, m=FIVE, n={"marName": "n.mar", "minWorkers": 1}))
        assert house.registry.find("m").min_workers == workers
        assert (await house.stored())["m", "1.0"].min_workers == workers
        assert house.registry.has("n", "1.0") is not last_known

    before(tmp_path, first)
    in_a_house(tmp_path, second)


def test_the_last_snapshot_counts_for_a_server_without_a_state(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        house.pack("m")
        await house.start(snapshot=snapshot_of(last_known=True, m=FIVE))
        assert house.registry.find("m").min_workers == 2

    in_a_house(tmp_path, test)


def test_the_default_version_of_a_snapshot(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        two_versions(house)
        one, two = (ModelDefaults(mar_name=f"{name}.mar", default_version=name == "b") for name in "ab")
        await house.start(snapshot=Snapshot({"m": {"1.0": one, "2.0": two}}))
        assert house.registry.find("m").labels == ("m", "2.0")
        assert house.registry.find("m").min_workers == 1

    in_a_house(tmp_path, test)


@pytest.mark.parametrize("content", [None, b"PK nonsense"])
def test_a_snapshot_that_names_what_is_not_there(tmp_path: Path, content: bytes | None) -> None:
    """The model is FAILED and says why, until it is registered again."""

    async def first(house: House) -> None:
        house.pack("n")
        if content:
            (house.root / "m.mar").write_bytes(content)
        await house.start(snapshot=snapshot_of(m=FIVE, n={"marName": "n.mar", "minWorkers": 0}))
        await check(house)
        assert house.registry.find("n").state is ModelState.READY
        with pytest.raises(WorkersNotStarted, match=r"m\.mar"):
            await house.management.scale("m", None, 1, 1, wait=True)
        with pytest.raises(ServiceUnavailable, match=r"m\.mar"):
            house.submit("m")

    async def check(house: House) -> None:
        version = house.registry.find("m")
        assert (version.state, version.min_workers, version.max_workers) == (ModelState.FAILED, 2, 3)
        assert "m.mar" in version.reason
        assert house.health.ping()[0] == 500

    async def second(house: House) -> None:
        await house.start()
        await check(house)
        await house.register("m", initial_workers=1)
        await until(lambda: not house.management.operations._background)
        assert house.registry.find("m").state is ModelState.READY
        assert house.health.ping()[0] == 200

    async def third(house: House) -> None:
        await house.start()
        assert house.registry.find("m").min_workers == 1
        await house.management.unregister("m", None)

    before(tmp_path, first)
    before(tmp_path, second)
    in_a_house(tmp_path, third)


def test_one_that_was_lost_can_be_unregistered(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        await house.start(snapshot=snapshot_of(m=FIVE))
        await house.management.unregister("m", None)
        assert house.registry.names() == []
        assert await house.stored() == {}

    in_a_house(tmp_path, test)
