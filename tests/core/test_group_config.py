from __future__ import annotations

from pathlib import Path

import pytest

from msx_core.group_config import GroupConfigError, GroupOfRanks, read_group_config
from tests.core.test_mindir import field, varint


def group(name: str, *ranks: int, packed: bool = False) -> bytes:
    numbers = [varint(rank) for rank in ranks]
    dims = field(1, b"".join(numbers)) if packed else b"".join(varint(1 << 3) + number for number in numbers)
    return field(1, (field(1, name.encode()) if name else b"") + field(2, dims))


def written(folder: Path, data: bytes) -> Path:
    path = folder / "group_config.pb"
    path.write_bytes(data)
    return path


def test_groups(tmp_path: Path) -> None:
    data = group("2-123", 0, 1) + group("1-5", 4, packed=True) + group("4-1", 0, 1, 2, 300, packed=True) + field(2, b"")
    assert read_group_config(written(tmp_path, data)) == [
        GroupOfRanks("2-123", (0, 1)),
        GroupOfRanks("1-5", (4,)),
        GroupOfRanks("4-1", (0, 1, 2, 300)),
    ]
    assert read_group_config(written(tmp_path, b"")) == []


def test_as_mindspore_writes_it(tmp_path: Path) -> None:
    messages = pytest.importorskip("mindspore.train.node_strategy_pb2")
    groups = messages.ParallelGroupMap()
    item = groups.parallel_group_item.add()
    item.group_name = "2-9"
    item.parallel_group_ranks.dim.extend([0, 3])
    groups.ckpt_restore_rank_list.dim.extend([0])
    assert read_group_config(written(tmp_path, groups.SerializeToString())) == [GroupOfRanks("2-9", (0, 3))]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x0a\x05\x0a", "is not a file of groups"),
        (b'{"a": 1}', "is not a file of groups"),
        (group("", 0), "without a name"),
        (field(1, field(1, b"a")), "without ranks"),
        (group("a", 1, 1), "names a rank twice: [1, 1]"),
        (group("a", 0) + group("a", 1), "has the group 'a' twice"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, data: bytes, text: str) -> None:
    with pytest.raises(GroupConfigError) as raised:
        read_group_config(written(tmp_path, data))
    assert text in str(raised.value)
    assert "group_config.pb" in str(raised.value)


def test_a_file_that_is_absent(tmp_path: Path) -> None:
    with pytest.raises(GroupConfigError, match=r"absent\.pb cannot be read: No such file"):
        read_group_config(tmp_path / "absent.pb")
