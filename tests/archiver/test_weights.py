from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from msx_archiver.errors import PackError
from msx_archiver.weights import find_weights, serialized_name
from tests.archiver.conftest import write_folder

InFolder = Callable[..., Path]
DATA = Path(__file__).parents[1] / "core" / "data"


def paths(serialized_file: str) -> list[str]:
    return [path for path, _ in find_weights(serialized_file)]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("w.ckpt", "w.ckpt"),
        ("/models/w.ckpt", "w.ckpt"),
        ("/models/w_{rank}.ckpt", "w_{rank}.ckpt"),
        ("/models/rank_{rank}/w.ckpt", "rank_{rank}/w.ckpt"),
    ],
)
def test_serialized_name(given: str, name: str) -> None:
    assert serialized_name(given) == name


def test_one_file_per_rank(in_folder: InFolder) -> None:
    write_folder(in_folder(), {f"d/w_{rank}.st": b"" for rank in range(11)} | {"d/w_x.st": b"", "d/w_01.st": b""})
    assert paths("d/w_{rank}.st") == [f"w_{rank}.st" for rank in range(11)]


def test_one_folder_per_rank(in_folder: InFolder) -> None:
    folder = write_folder(in_folder(), {f"rank_{rank}/w.ckpt": b"" for rank in range(2)})
    assert paths(f"{folder}/rank_{{rank}}/w.ckpt") == ["rank_0/w.ckpt", "rank_1/w.ckpt"]


def test_rank_twice_in_a_path(in_folder: InFolder) -> None:
    write_folder(in_folder(), {"r0/w0": b"", "r1/w1": b"", "r1/w9": b""})
    assert paths("r{rank}/w{rank}") == ["r0/w0", "r1/w1"]


def test_gap_is_an_error_that_names_the_missing_file(in_folder: InFolder) -> None:
    write_folder(in_folder(), {"w_0": b"", "w_1": b"", "w_3": b""})
    with pytest.raises(PackError, match="w_2 is missing, but w_3 exists"):
        paths("w_{rank}")
    with pytest.raises(PackError, match="v_0 does not exist"):
        paths("v_{rank}")


def test_special_characters_are_not_a_pattern(in_folder: InFolder) -> None:
    write_folder(in_folder(), {"a[1]+_0.st": b"", "a1_0.st": b""})
    assert paths("a[1]+_{rank}.st") == ["a[1]+_0.st"]


def large_mindir(folder: Path, **files: bytes) -> Path:
    write_folder(folder, {"big_graph.mindir": (DATA / "big_graph.mindir").read_bytes()})
    write_folder(folder / "big_variables", files)
    return folder / "big_graph.mindir"


def test_large_mindir_brings_its_variables(in_folder: InFolder) -> None:
    file = large_mindir(in_folder() / "d", data_0=b"0", data_1=b"1")
    assert paths(str(file)) == ["big_graph.mindir", "big_variables/data_0", "big_variables/data_1"]


def test_variables_of_every_rank(in_folder: InFolder) -> None:
    for rank in range(2):
        large_mindir(in_folder() / f"rank_{rank}", data_0=b"")
    found = paths("rank_{rank}/big_graph.mindir")
    assert [path for path in found if "variables" in path] == [f"rank_{rank}/big_variables/data_0" for rank in (0, 1)]


def test_variables_that_are_missing(in_folder: InFolder) -> None:
    file = large_mindir(in_folder())
    with pytest.raises(PackError, match="keeps weights in 'big_variables/data_0', which is missing"):
        paths(str(file))


def test_encrypted_mindir_is_packed_as_it_is(in_folder: InFolder) -> None:
    write_folder(in_folder(), {"e.mindir": (DATA / "enc.mindir").read_bytes(), "e_variables/data_0": b""})
    assert paths("e.mindir") == ["e.mindir", "e_variables/data_0"]
