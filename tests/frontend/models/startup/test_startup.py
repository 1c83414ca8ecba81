"""Which models a server starts with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from msx_core.service_errors import ServiceUnavailable
from msx_frontend.config import ModelDefaults, Snapshot
from msx_frontend.management_errors import WorkersNotStarted
from msx_frontend.models.startup.arguments import StartupError
from msx_frontend.models.startup.servable_folders import PackedServables
from msx_frontend.models.startup.startup import Startup
from msx_frontend.models.startup.summary import StartSummary
from msx_frontend.models.traffic import TrafficRule
from msx_frontend.models.versions.states import ModelState
from tests.frontend.harness import FakeGroup, Harness, Scenario, in_harness, until
from tests.frontend.packing import pack_model


def before(folder: Path, test: Scenario, **options: Any) -> None:
    """Run an earlier server of this folder. It is gone, as after a SIGKILL: nothing was unregistered."""
    in_harness(folder, test, **options)


async def names_of(harness: Harness) -> list[str]:
    return [" ".join(version.labels) for version in harness.registry.all_versions()]


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
    async def test(harness: Harness) -> None:
        harness.pack("m")
        harness.pack("n")
        await harness.start(*models)
        assert harness.registry.names() == served
        assert all(version.source.at_startup for version in harness.registry.all_versions())
        assert all(version.workers.least == 1 for version in harness.registry.all_versions())
        assert {name for name, _ in await harness.stored()} == set(served)

    in_harness(tmp_path, test)


def test_groups_get_their_devices_before_others_share_the_rest(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        harness.pack("a")
        harness.pack("b", config="parallelType: tp\nmsrun: {nproc-per-node: 2}\nminWorkers: 1\nmaxWorkers: 1\n")
        await harness.start("all")
        assert harness.devices_of("b") == [(0, 1)]
        assert sorted(harness.devices_of("a")) == [(2,), (3,)]

    in_harness(tmp_path, test, npus=4)


def test_the_versions_of_a_name_keep_their_order(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        (harness.pack("m", "1.0")).rename(harness.root / "1.mar")
        (harness.pack("m", "2.0", config="parallelType: tp\nmsrun: {nproc-per-node: 2}\n")).rename(
            harness.root / "2.mar"
        )
        harness.pack("a")
        await harness.start("a.mar", "1.mar", "2.mar")
        assert harness.registry.find("m").source.version == "1.0"

    in_harness(tmp_path, test)


def test_a_path_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = pack_model(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path)

    async def test(harness: Harness) -> None:
        await harness.start("elsewhere/m.mar", f"n={elsewhere}")
        assert harness.registry.names() == ["m", "n"]
        assert {one.url for one in (await harness.stored()).values()} == {str(elsewhere)}

    in_harness(tmp_path, test)


def test_a_path_with_an_equals_sign(tmp_path: Path) -> None:
    odd = tmp_path / "a=b"
    pack_model(odd)

    async def test(harness: Harness) -> None:
        await harness.start(str(odd / "m.mar"))
        assert harness.registry.names() == ["m"]

    in_harness(tmp_path, test)


def test_a_link_in_the_store_keeps_its_name(tmp_path: Path) -> None:
    elsewhere = pack_model(tmp_path / "elsewhere")

    async def test(harness: Harness) -> None:
        (harness.root / "link.mar").symlink_to(elsewhere)
        await harness.start("link.mar")
        assert (await harness.stored())["m", "1.0"].url == "link.mar"

    in_harness(tmp_path, test)


def test_an_archive_that_is_not_there_keeps_the_server_from_starting(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        with pytest.raises(StartupError, match=r"--models x=no\.mar: no\.mar is neither a path nor in the model store"):
            await harness.start("x=no.mar")

    in_harness(tmp_path, test)


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
    async def test(harness: Harness) -> None:
        for name in packed:
            harness.pack(name)
        with pytest.raises(StartupError) as caught:
            await harness.start(model)
        assert str(caught.value).endswith(f"is neither a path nor in the model store {harness.root}{told}")

    in_harness(tmp_path, test)


@pytest.mark.parametrize("models", ["m.mar,n.mar", "m.mar, n.mar,"])
def test_models_of_the_command_line_are_separated_by_spaces(tmp_path: Path, models: str) -> None:
    async def test(harness: Harness) -> None:
        harness.pack("m")
        with pytest.raises(StartupError, match=r"; models are separated by spaces: --models m\.mar n\.mar$"):
            await harness.start(models)

    in_harness(tmp_path, test)


@pytest.mark.parametrize("named", ["{}", "other={}"])
@pytest.mark.parametrize("content", [b"", b"weights", b"\x08\x01\x12\x02", b"PK\x05\x06" + bytes(18)])
def test_weights_are_no_archive(tmp_path: Path, content: bytes, named: str) -> None:
    """The last one is a zip without a manifest, as torch's files are."""
    file = tmp_path / "my net.ckpt"
    file.write_bytes(content)

    async def test(harness: Harness) -> None:
        with pytest.raises(StartupError) as caught:
            await harness.start(named.format(file))
        first, *lines = str(caught.value).splitlines()
        assert first.startswith(str(file))
        assert "Pack weights with the network's Python file" in first
        line = "  msx-archiver --model-name my-net --version 1.0 --handler"
        assert lines == [
            f"{line} checkpoint --model-file 'my net.py' --serialized-file '{file}'",
            f"{line} handler.py --serialized-file '{file}'",
            f"Without packing: msx-serve 'my net.py' --weights '{file}'",
        ]

    in_harness(tmp_path, test)


@pytest.mark.parametrize("name", ["net.mindir", "handler.py"])
def test_what_is_served_without_packing_is_told_so(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(b"x")

    async def test(harness: Harness) -> None:
        harness.pack("m")
        with pytest.raises(StartupError, match=rf"`msx-serve {file}`, with no other model, serves it as it is"):
            await harness.start("m.mar", str(file))

    in_harness(tmp_path, test)


def test_an_archive_may_have_any_name(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        harness.pack("m").rename(harness.root / "m-archive")
        await harness.start("m-archive")
        assert harness.registry.names() == ["m"]

    in_harness(tmp_path, test)


def test_an_archive_that_is_damaged_does_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test(harness: Harness) -> None:
        harness.pack("m")
        (harness.root / "bad.mar").write_bytes(b"PK nonsense")
        await harness.start("bad.mar", "m.mar")
        assert harness.registry.names() == ["m"]

    in_harness(tmp_path, test)
    assert any("model bad.mar could not be loaded" in message for message in caplog.messages)


def test_a_model_that_does_not_load_does_not_hold_up_the_start(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        harness.pack("m")
        FakeGroup.loading.add("m")
        await harness.start("m.mar")
        assert harness.registry.names() == ["m"]
        assert harness.registry.find("m").workers.ready == 0

    in_harness(tmp_path, test)


# -- the state --


def test_a_restarted_server_has_the_same_models(tmp_path: Path) -> None:
    async def first(harness: Harness) -> None:
        await harness.register("m", "1.0", initial_workers=0)
        await harness.register("m", "2.0", batch_size=7, response_timeout=9)
        await harness.register("n", "1.0")
        await harness.management.set_default("m", "2.0")
        await harness.management.scale("m", "2.0", 2, 3, wait=True)

    async def second(harness: Harness) -> None:
        # one archive a name is in the store, so each name has the version that was packed last
        harness.pack("m", "2.0")
        await harness.start()
        version = harness.registry.find("m")
        assert version.labels == ("m", "2.0")
        assert (version.workers.least, version.workers.most) == (2, 3)
        assert (version.config.batch_size, version.config.response_timeout) == (7, 9)
        assert version.source.options["initial_workers"] == 1
        await until(lambda: len(harness.groups("m")) == 2)

    before(tmp_path, first)
    in_harness(tmp_path, second)


def two_versions(harness: Harness) -> list[str]:
    """m 1.0 in a.mar and m 2.0 in b.mar."""
    for name, version in (("a", "1.0"), ("b", "2.0")):
        harness.pack("m", version).rename(harness.root / f"{name}.mar")
    return ["a.mar", "b.mar"]


@pytest.mark.parametrize("default", ["1.0", "2.0"])
def test_the_default_is_the_same(tmp_path: Path, default: str) -> None:
    async def first(harness: Harness) -> None:
        await harness.start(*two_versions(harness))
        await harness.management.set_default("m", default)

    async def second(harness: Harness) -> None:
        await harness.start()
        assert await names_of(harness) == ["m 1.0", "m 2.0"]
        assert harness.registry.find("m").labels == ("m", default)
        assert {one.version: one.is_default for one in (await harness.stored()).values()} == {
            version: version == default for version in ("1.0", "2.0")
        }

    before(tmp_path, first)
    in_harness(tmp_path, second)


@pytest.mark.parametrize("default", ["1.0", "2.0"])
def test_the_division_of_traffic_is_the_same(tmp_path: Path, default: str) -> None:
    """Twice, because a restart must not change what it restores."""
    rule = TrafficRule({"1.0": 90.0, "2.0": 10.0})

    async def first(harness: Harness) -> None:
        await harness.start(*two_versions(harness))
        await harness.management.set_default("m", default)
        await harness.management.divide_traffic("m", rule)

    async def again(harness: Harness) -> None:
        await harness.start()
        assert harness.registry.default_of("m") == default
        assert harness.registry.traffic("m") == rule

    before(tmp_path, first)
    before(tmp_path, again)
    in_harness(tmp_path, again)


def test_models_of_the_command_line_are_added_to_those_of_the_state(tmp_path: Path) -> None:
    async def first(harness: Harness) -> None:
        await harness.register("m")

    async def second(harness: Harness) -> None:
        harness.pack("n")
        await harness.start("n.mar", "m.mar")
        assert harness.registry.names() == ["m", "n"]
        assert len(harness.groups("m")) == 1

    before(tmp_path, first)
    in_harness(tmp_path, second)


@pytest.mark.parametrize("default", ["1.0", "2.0"])
def test_on_another_digest_the_command_line_wins_and_the_default_stays(tmp_path: Path, default: str) -> None:
    async def first(harness: Harness) -> None:
        await harness.start(*two_versions(harness))
        await harness.management.set_default("m", default)
        await harness.management.scale("m", "1.0", 3, 3, wait=True)

    async def second(harness: Harness) -> None:
        old = (await harness.stored())["m", "1.0"]
        harness.pack("m", "1.0", config="batchSize: 9").rename(harness.root / "a.mar")
        await harness.start("a.mar")
        version = harness.registry.find("m", "1.0")
        assert version.config.batch_size == 9
        assert version.source.digest != old.digest
        assert version.workers.least == 1
        assert harness.registry.find("m").labels == ("m", default)
        assert (await harness.stored())["m", "1.0"].digest == version.source.digest

    before(tmp_path, first)
    in_harness(tmp_path, second)


def test_models_have_the_age_that_the_state_remembers(tmp_path: Path) -> None:
    """Also one that the command line has with another digest, or a snapshot names."""

    async def first(harness: Harness) -> None:
        for model in ("c", "b", "a"):
            await harness.register(model)
        assert harness.registry.names_by_age() == ["c", "b", "a"]

    async def second(harness: Harness) -> None:
        harness.pack("c", config="batchSize: 9")
        harness.pack("new")
        await harness.start("new.mar", "c.mar", snapshot=Snapshot({"b": {"1.0": ModelDefaults(mar_name="b.mar")}}))
        assert harness.registry.find("c").config.batch_size == 9
        assert harness.registry.names_by_age() == ["c", "b", "a", "new"]

    before(tmp_path, first)
    in_harness(tmp_path, second)


def test_one_that_cannot_be_restored_is_failed_until_it_is_there_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def first(harness: Harness) -> None:
        await harness.register("m", initial_workers=2)
        await harness.register("n")

    async def second(harness: Harness) -> None:
        stored = await harness.stored()
        (harness.root / "m.mar").rename(harness.root / "away")
        await harness.start()
        version = harness.registry.find("m")
        assert (version.status.state, version.workers.least) == (ModelState.FAILED, 2)
        assert version.status.reason.startswith("Model not found at: m.mar")
        await until(lambda: harness.registry.find("n").status.state is ModelState.READY)
        with pytest.raises(ServiceUnavailable, match=r"m\.mar"):
            harness.submit("m")
        assert await harness.stored() == stored
        (harness.root / "away").rename(harness.root / "m.mar")

    async def third(harness: Harness) -> None:
        await harness.start()
        await until(lambda: harness.registry.find("m").status.state is ModelState.READY)
        assert harness.registry.find("m").workers.least == 2

    before(tmp_path, first)
    before(tmp_path, second)
    (told,) = [message for message in caplog.messages if "could not be restored" in message]
    assert told.startswith("model m 1.0 could not be restored: Model not found")
    assert told.endswith(
        "; it is remembered until it is unregistered (--enable-model-api), or its archive is back at a start"
    )
    in_harness(tmp_path, third)


def test_one_that_cannot_be_restored_is_taken_from_the_command_line(tmp_path: Path) -> None:
    async def first(harness: Harness) -> None:
        await harness.register("m")

    async def second(harness: Harness) -> None:
        (harness.root / "m.mar").rename(harness.root / "moved.mar")
        await harness.start("moved.mar")
        await until(lambda: harness.registry.find("m").status.state is ModelState.READY)
        assert harness.registry.find("m").source.url == "moved.mar"

    before(tmp_path, first)
    in_harness(tmp_path, second)


def test_an_archive_that_is_another_version_now(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def first(harness: Harness) -> None:
        await harness.register("m", "1.0")

    async def second(harness: Harness) -> None:
        harness.pack("m", "2.0")
        await harness.start()
        assert [version.labels for version in harness.registry.all_versions()] == [("m", "1.0")]
        assert harness.registry.find("m").status.state is ModelState.FAILED
        assert "holds m 2.0 now; register it anew" in harness.registry.find("m").status.reason
        assert FakeGroup.living == []

    before(tmp_path, first)
    in_harness(tmp_path, second)
    assert any("holds m 2.0 now; register it anew" in message for message in caplog.messages)


def test_a_registration_by_another_name_and_a_path_of_the_client(tmp_path: Path) -> None:
    async def first(harness: Harness) -> None:
        await harness.register("m", url="/on/the/client/m.mar", model_name="other")

    async def second(harness: Harness) -> None:
        await harness.start()
        assert harness.registry.names() == ["other"]

    before(tmp_path, first)
    in_harness(tmp_path, second)


def test_restoring_writes_nothing(tmp_path: Path) -> None:
    async def first(harness: Harness) -> None:
        await harness.register("m")

    async def second(harness: Harness) -> None:
        stored = await harness.stored()
        FakeGroup.failing.add("m")
        await harness.start()
        assert await harness.stored() == stored

    before(tmp_path, first)
    in_harness(tmp_path, second)


def test_an_option_of_another_version_of_the_server_does_not_stop_the_start(tmp_path: Path) -> None:
    async def first(harness: Harness) -> None:
        await harness.register("m")

    async def second(harness: Harness) -> None:
        (stored,) = (await harness.stored()).values()
        newer = msgspec.structs.replace(stored, options={**stored.options, "colour": "red"})
        harness.state._store.save_version(newer)
        await harness.start()
        assert harness.registry.names() == ["m"]

    before(tmp_path, first)
    in_harness(tmp_path, second)


def test_a_model_of_an_older_server_is_known_as_one(tmp_path: Path) -> None:
    """Its workers start although rows of it differ, which older servers did not look at."""

    async def first(harness: Harness) -> None:
        await harness.register("m")
        (stored,) = (await harness.stored()).values()
        harness.state._store.save_version(
            msgspec.structs.replace(stored, options={"url": "m.mar", "initial_workers": 1})
        )
        await harness.register("n")

    async def second(harness: Harness) -> None:
        harness.pack("o")
        await harness.start("o.mar")
        (group,) = harness.groups("m")
        assert group.spec.load.from_older_server
        older = [harness.registry.find(name).source.from_older_server for name in ("m", "n", "o")]
        assert older == [True, False, False]

    before(tmp_path, first)
    in_harness(tmp_path, second)


# -- what a start says --


def test_the_account_of_a_start(tmp_path: Path) -> None:
    async def first(harness: Harness) -> None:
        harness.pack("n")
        assert await harness.start() == "none"
        await harness.register("m")
        await harness.register("m", "2.0")
        await harness.management.scale("m", "2.0", 2, 4, wait=True)

    async def second(harness: Harness) -> None:
        said = await harness.start("n.mar", "m.mar", snapshot=snapshot_of(s=FIVE))
        assert said == (
            "asked for: n 1.0, m 2.0; of the snapshot: s 1.0 (2 to 3 workers); "
            "remembered: m 1.0 (1 worker), m 2.0 (2 to 4 workers)"
        )

    before(tmp_path, first)
    in_harness(tmp_path, second)


def test_an_account_names_the_first_ones() -> None:
    names = [f"m{number} 1.0" for number in range(12)]
    assert StartSummary(asked=names).text() == f"asked for: {', '.join(names[:10])}, and 2 more"


# -- a snapshot --


def snapshot_of(*, last_known: bool = False, **models: dict[str, Any]) -> Snapshot:
    """Models by name; each has version 1.0."""
    said = {name: {"1.0": msgspec.convert(members, ModelDefaults)} for name, members in models.items()}
    return Snapshot(said, last_known=last_known)


FIVE = {"marName": "m.mar", "defaultVersion": True, "minWorkers": 2, "maxWorkers": 3, "batchSize": 5}


def test_a_snapshot_is_honoured_and_remembered(tmp_path: Path) -> None:
    async def first(harness: Harness) -> None:
        harness.pack("m", config="batchSize: 9\nmaxBatchDelay: 40\n")
        await harness.start(snapshot=snapshot_of(renamed=FIVE | {"responseTimeout": 7, "startupTimeout": 8}))
        version = harness.registry.find("renamed")
        config = version.config
        assert (config.batch_size, config.max_batch_delay) == (5, 40), "it beats the yaml in what it says"
        assert (config.response_timeout, config.startup_timeout) == (7, 8)
        assert (version.workers.least, version.workers.most) == (2, 3)
        assert version.source.at_startup

    async def second(harness: Harness) -> None:
        await harness.start()
        assert harness.registry.find("renamed").config.batch_size == 5

    before(tmp_path, first)
    in_harness(tmp_path, second)


@pytest.mark.parametrize(("last_known", "workers"), [(True, 4), (False, 2)])
def test_the_state_is_newer_than_the_last_snapshot_and_yields_to_a_given_one(
    tmp_path: Path, last_known: bool, workers: int
) -> None:
    async def first(harness: Harness) -> None:
        await harness.register("m")
        await harness.management.scale("m", "1.0", 4, 4, wait=True)

    async def second(harness: Harness) -> None:
        harness.pack("n")
        await harness.start(
            snapshot=snapshot_of(last_known=last_known, m=FIVE, n={"marName": "n.mar", "minWorkers": 1})
        )
        assert harness.registry.find("m").workers.least == workers
        assert (await harness.stored())["m", "1.0"].min_workers == workers
        assert harness.registry.has("n", "1.0") is not last_known

    before(tmp_path, first)
    in_harness(tmp_path, second)


def test_the_last_snapshot_counts_for_a_server_without_a_state(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        harness.pack("m")
        await harness.start(snapshot=snapshot_of(last_known=True, m=FIVE))
        assert harness.registry.find("m").workers.least == 2

    in_harness(tmp_path, test)


def test_the_default_version_of_a_snapshot(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        two_versions(harness)
        one, two = (ModelDefaults(mar_name=f"{name}.mar", default_version=name == "b") for name in "ab")
        await harness.start(snapshot=Snapshot({"m": {"1.0": one, "2.0": two}}))
        assert harness.registry.find("m").labels == ("m", "2.0")
        assert harness.registry.find("m").workers.least == 1

    in_harness(tmp_path, test)


@pytest.mark.parametrize("content", [None, b"PK nonsense"])
def test_a_snapshot_that_names_what_is_not_there(tmp_path: Path, content: bytes | None) -> None:
    """The model is FAILED and says why, until it is registered again."""

    async def first(harness: Harness) -> None:
        harness.pack("n")
        if content:
            (harness.root / "m.mar").write_bytes(content)
        await harness.start(snapshot=snapshot_of(m=FIVE, n={"marName": "n.mar", "minWorkers": 0}))
        await check(harness)
        assert harness.registry.find("n").status.state is ModelState.READY
        with pytest.raises(WorkersNotStarted, match=r"m\.mar"):
            await harness.management.scale("m", None, 1, 1, wait=True)
        with pytest.raises(ServiceUnavailable, match=r"m\.mar"):
            harness.submit("m")

    async def check(harness: Harness) -> None:
        version = harness.registry.find("m")
        assert (version.status.state, version.workers.least, version.workers.most) == (ModelState.FAILED, 2, 3)
        assert "m.mar" in version.status.reason
        assert harness.health.ping()[0] == 500

    async def second(harness: Harness) -> None:
        await harness.start()
        await check(harness)
        await harness.register("m", initial_workers=1)
        await until(lambda: not harness.management.operations._background)
        assert harness.registry.find("m").status.state is ModelState.READY
        assert harness.health.ping()[0] == 200

    async def third(harness: Harness) -> None:
        await harness.start()
        assert harness.registry.find("m").workers.least == 1
        await harness.management.unregister("m", None)

    before(tmp_path, first)
    before(tmp_path, second)
    in_harness(tmp_path, third)


def test_one_that_was_lost_can_be_unregistered(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.start(snapshot=snapshot_of(m=FIVE))
        await harness.management.unregister("m", None)
        assert harness.registry.names() == []
        assert await harness.stored() == {}

    in_harness(tmp_path, test)


def test_what_is_not_loaded_is_told_as_long_as_that_is_so(tmp_path: Path) -> None:
    async def first(harness: Harness) -> None:
        await harness.register("m")

    async def second(harness: Harness) -> None:
        (harness.root / "m.mar").unlink()
        (harness.root / "bad.mar").write_bytes(b"not an archive")
        startup = Startup(harness.management, harness.state, ("bad.mar",))
        assert await startup.load() == startup.not_loaded()
        assert [text.partition(" could not ")[0] for text in startup.not_loaded()] == ["model bad.mar", "model m 1.0"]
        await harness.management.unregister("m", None)
        assert [text.partition(" could not ")[0] for text in startup.not_loaded()] == ["model bad.mar"]
        await harness.register("bad")
        await until(lambda: harness.registry.find("bad").status.served)
        assert startup.not_loaded() == []

    before(tmp_path, first)
    in_harness(tmp_path, second)


def test_the_newest_version_of_a_servable_is_the_default_until_the_user_chooses(tmp_path: Path) -> None:
    def servables(harness: Harness, *versions: str) -> PackedServables:
        archives = [harness.pack("add", version).rename(harness.root / f"add-{version}.mar") for version in versions]
        return PackedServables(archives, {"add": versions[0]}, [("servable bad 1 could not be packed", "bad-1.mar")])

    def default(harness: Harness) -> str:
        return harness.registry.find("add").source.version

    async def first(harness: Harness) -> None:
        account = await harness.start(servables=servables(harness, "10", "9"))
        assert (default(harness), account) == ("10", "asked for: add 10, add 9")
        await harness.management.set_default("add", "9")

    async def second(harness: Harness) -> None:
        await harness.start(servables=servables(harness, "10", "9"))
        assert default(harness) == "9"

    async def third(harness: Harness) -> None:
        await harness.start(servables=servables(harness, "11", "10", "9"))
        assert default(harness) == "11"

    before(tmp_path, first)
    before(tmp_path, second)
    in_harness(tmp_path, third)
