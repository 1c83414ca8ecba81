"""Reads a rank table: which rank is on which device of which machine. The texts are MindSpore Serving's."""

import json
from pathlib import Path
from typing import Any, NamedTuple

CARDS = 8
"""Devices of one machine, as MindSpore Serving counts them."""
MOST_BYTES = 16 << 20


class RankPlace(NamedTuple):
    """Where one rank is; its number is its place in the list."""

    host: str
    device_id: int


def read_rank_table(path: str) -> list[RankPlace]:
    """The places of the ranks 0, 1, …. Raises RuntimeError."""
    table = _load(path)
    if not isinstance(table, dict):
        raise RuntimeError(f"{path} is not json object")
    return _of_groups(table, path) if "group_list" in table else _of_servers(table, path)


def check_rank_table(places: list[RankPlace], path: str, rank_size: int, stage_size: int) -> None:
    """Whether it is a table for what the servable declares. Raises RuntimeError."""
    if rank_size % stage_size:
        raise RuntimeError(
            f"Rank size must be an integral multiple of stage size, rank size: {rank_size}, stage size: {stage_size}"
        )
    if len(places) != rank_size:
        raise RuntimeError(
            f"Rank size {len(places)} declared in rank table file '{path}' not equal to {rank_size} declared in "
            "servable config"
        )
    if stage_size == 1:
        _check_devices(places)
    else:
        _check_machines(places, stage_size)


def _load(path: str) -> Any:
    file = Path(path)
    if not file.exists():
        raise RuntimeError(f"failed to get realpath of：{path}")
    try:
        with file.open("rb") as opened:
            text = opened.read(MOST_BYTES + 1)
    except OSError:
        raise RuntimeError(f"failed to open rank table file：{path}") from None
    if len(text) > MOST_BYTES:
        raise RuntimeError(f"parse error:{path} is larger than {MOST_BYTES} bytes")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RuntimeError(f"parse error:{error}") from None


def _of_servers(table: dict[str, Any], path: str) -> list[RankPlace]:
    places: list[RankPlace] = []
    for server in _items(table, "server_list", path):
        devices = _items(server, "device", path)
        host = _text(server, "server_id", path)
        for device in devices:
            place = RankPlace(host, _number(device, "device_id", path))
            _add(places, place, _number(device, "rank_id", path), path)
    return places


def _of_groups(table: dict[str, Any], path: str) -> list[RankPlace]:
    """The older form, in which each instance has one device."""
    places: list[RankPlace] = []
    for group in _items(table, "group_list", path):
        for instance in _items(group, "instance_list", path):
            devices = _items(instance, "devices", path)
            place = RankPlace(_text(instance, "server_id", path), _number(devices[0], "device_id", path))
            _add(places, place, _number(instance, "rank_id", path), path)
    return places


def _add(places: list[RankPlace], place: RankPlace, rank: int, path: str) -> None:
    if rank != len(places):
        raise RuntimeError(f"device size not match rank_id in{path}")
    places.append(place)


def _items(parent: Any, key: str, path: str) -> list[Any]:
    value = parent.get(key) if isinstance(parent, dict) else None
    if not isinstance(value, list) or not value:
        raise RuntimeError(f"{key} attr is empty in{path}")
    return value


def _text(parent: Any, key: str, path: str) -> str:
    value = parent.get(key) if isinstance(parent, dict) else None
    if not isinstance(value, str) or not value:
        raise RuntimeError(f"{key} attr is empty in{path}")
    return value


def _number(parent: Any, key: str, path: str) -> int:
    text = _text(parent, key, path)
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise RuntimeError(f"{key}attr is invalid argument in{path}")
    return int(text)


def _check_devices(places: list[RankPlace]) -> None:
    used: set[RankPlace] = set()
    for rank, place in enumerate(places):
        if place in used:
            raise RuntimeError(
                f"Check rank table config failed, device id repeatedly used by rank {rank} in device ip {place.host}"
            )
        used.add(place)
        if place.device_id >= CARDS:
            raise RuntimeError(f"Check rank table config failed, device id cannot larger than {CARDS}")


def _check_machines(places: list[RankPlace], stage_size: int) -> None:
    """Stages are laid out over whole machines."""
    if len(places) < CARDS:
        raise RuntimeError(
            f"Rank size {len(places)}must >= card count {CARDS} of one machine when stage size {stage_size} > 1"
        )
    for rank, place in enumerate(places):
        expected, first = rank % CARDS, rank - rank % CARDS
        if place.device_id != expected:
            raise RuntimeError(f"Check rank table config failed, expected device id of rank {rank} to be {expected}")
        if place.host != places[first].host:
            raise RuntimeError(
                f"Check rank table config failed, expected device ip {place.host} of rank {rank} to be equal with "
                f"device ip {places[first].host} of rank {first}"
            )
