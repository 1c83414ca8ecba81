from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msx_mindspore_serving.packages.mindspore_serving.server.distributed.rank_table import (
    RankPlace,
    check_rank_table,
    read_rank_table,
)

CHECK = "Check rank table config failed, "


def server(host: str, *devices: tuple[str, str]) -> dict[str, Any]:
    return {"server_id": host, "device": [{"device_id": device, "rank_id": rank} for device, rank in devices]}


def instance(host: str, device: str, rank: str) -> dict[str, Any]:
    return {"server_id": host, "devices": [{"device_id": device, "device_ip": "192.168.100.101"}], "rank_id": rank}


def written(folder: Path, table: Any) -> str:
    file = folder / "rank_table.json"
    file.write_text(table if isinstance(table, str) else json.dumps(table))
    return str(file)


def groups(*instances: dict[str, Any]) -> dict[str, Any]:
    return {"group_list": [{"device_num": "2", "instance_list": list(instances)}]}


def test_a_table_of_servers(tmp_path: Path) -> None:
    table = {
        "version": "1.0",
        "server_list": [server("10.0.0.1", ("2", "0"), ("3", "1")), server("10.0.0.2", ("0", "2"))],
    }
    assert read_rank_table(written(tmp_path, table)) == [
        RankPlace("10.0.0.1", 2),
        RankPlace("10.0.0.1", 3),
        RankPlace("10.0.0.2", 0),
    ]


def test_a_table_of_groups_comes_first(tmp_path: Path) -> None:
    table = groups(instance("127.0.0.1", "4", "0"), instance("127.0.0.1", "5", "1"))
    table["server_list"] = [server("10.0.0.1", ("0", "0"))]
    assert read_rank_table(written(tmp_path, table)) == [RankPlace("127.0.0.1", 4), RankPlace("127.0.0.1", 5)]


EMPTY = ("server_list", "device", "server_id", "device_id", "rank_id")
REFUSED: list[tuple[Any, str]] = [
    ([], "{f} is not json object"),
    ("1", "{f} is not json object"),
    ({}, "server_list attr is empty in{f}"),
    ({"server_list": {}}, "server_list attr is empty in{f}"),
    ({"server_list": []}, "server_list attr is empty in{f}"),
    ({"server_list": [{"server_id": "h"}]}, "device attr is empty in{f}"),
    ({"server_list": [{"device": [{}]}]}, "server_id attr is empty in{f}"),
    ({"server_list": [{"server_id": "h", "device": [{"rank_id": "0"}]}]}, "device_id attr is empty in{f}"),
    (
        {"server_list": [{"server_id": "h", "device": [{"device_id": 0, "rank_id": "0"}]}]},
        "device_id attr is empty in{f}",
    ),
    ({"server_list": [{"server_id": "h", "device": [{"device_id": "0"}]}]}, "rank_id attr is empty in{f}"),
    ({"server_list": [server("h", ("-1", "0"))]}, "device_idattr is invalid argument in{f}"),
    ({"server_list": [server("h", ("0", "1x"))]}, "rank_idattr is invalid argument in{f}"),
    ({"server_list": [server("h", ("0", "1"))]}, "device size not match rank_id in{f}"),
    ({"server_list": [server("h", ("0", "0"), ("1", "0"))]}, "device size not match rank_id in{f}"),
    ({"group_list": []}, "group_list attr is empty in{f}"),
    ({"group_list": [{}]}, "instance_list attr is empty in{f}"),
    (groups({"server_id": "h", "rank_id": "0"}), "devices attr is empty in{f}"),
    (groups(instance("", "0", "0")), "server_id attr is empty in{f}"),
    (groups(instance("h", "a", "0")), "device_idattr is invalid argument in{f}"),
    (groups(instance("h", "0", "")), "rank_id attr is empty in{f}"),
    (groups(instance("h", "0", "1")), "device size not match rank_id in{f}"),
]


@pytest.mark.parametrize(("table", "text"), REFUSED, ids=[text for _, text in REFUSED])
def test_tables_that_are_refused(tmp_path: Path, table: Any, text: str) -> None:
    file = written(tmp_path, table)
    with pytest.raises(RuntimeError) as raised:
        read_rank_table(file)
    assert str(raised.value) == text.format(f=file)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=f"^failed to get realpath of：{tmp_path}/absent$"):
        read_rank_table(f"{tmp_path}/absent")
    with pytest.raises(RuntimeError, match=f"^failed to open rank table file：{tmp_path}$"):
        read_rank_table(str(tmp_path))


@pytest.mark.parametrize("text", ["{", "", '{"a": 1} x', "[" * 100_000])
def test_what_is_not_json(tmp_path: Path, text: str) -> None:
    with pytest.raises(RuntimeError, match=r"^parse error:"):
        read_rank_table(written(tmp_path, text))


def ranks(count: int, host: str = "h") -> list[RankPlace]:
    return [RankPlace(host, rank % 8) for rank in range(count)]


SIZES: list[tuple[list[RankPlace], int, int, str]] = [
    (ranks(3), 3, 2, "Rank size must be an integral multiple of stage size, rank size: 3, stage size: 2"),
    (ranks(2), 4, 1, "Rank size 2 declared in rank table file 'f' not equal to 4 declared in servable config"),
    (
        [RankPlace("h", 0), RankPlace("h", 0)],
        2,
        1,
        f"{CHECK}device id repeatedly used by rank 1 in device ip h",
    ),
    ([RankPlace("h", 8)], 1, 1, f"{CHECK}device id cannot larger than 8"),
    (ranks(4), 4, 2, "Rank size 4must >= card count 8 of one machine when stage size 2 > 1"),
    ([*ranks(7), RankPlace("h", 0)], 8, 2, f"{CHECK}expected device id of rank 7 to be 7"),
    (
        [*ranks(8), RankPlace("a", 0), *[RankPlace("b", n) for n in range(1, 8)]],
        16,
        2,
        f"{CHECK}expected device ip b of rank 9 to be equal with device ip a of rank 8",
    ),
]


@pytest.mark.parametrize(("places", "rank_size", "stage_size", "text"), SIZES, ids=[text for *_, text in SIZES])
def test_tables_that_do_not_fit(places: list[RankPlace], rank_size: int, stage_size: int, text: str) -> None:
    with pytest.raises(RuntimeError) as raised:
        check_rank_table(places, "f", rank_size, stage_size)
    assert str(raised.value) == text


def test_tables_that_fit() -> None:
    check_rank_table(ranks(2), "f", 2, 1)
    check_rank_table([RankPlace("a", 0), RankPlace("b", 0)], "f", 2, 1)
    check_rank_table(ranks(8), "f", 8, 2)
