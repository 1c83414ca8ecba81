"""The groups that a MindIR names, and those that this rank is in."""

from pathlib import Path

import pytest

from msx_core.mindir_collectives import Collective, read_collectives
from msx_core.mindspore import collectives
from msx_core.mindspore.encrypted import Decryption, encrypted, read_encrypted
from msx_core.mindspore.groups import check_groups, counted, with_own_groups
from msx_sdk.context import Context, ModelInfo
from msx_sdk.errors import HandlerLoadError

REDUCE = Collective("AllReduce", "hccl_world_group")
DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(autouse=True)
def _no_groups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(collectives, "_members", {})
    monkeypatch.setattr(collectives, "_counts", type(collectives._counts)())
    monkeypatch.chdir(tmp_path)


def context(ranks: int) -> Context:
    return Context(ModelInfo("m", world_size=ranks))


def meet(ranks: int, group: str = "mccl_world_group") -> None:
    collectives.register(group, range(ranks))


def error(ranks: int, *used: Collective) -> str:
    with pytest.raises(HandlerLoadError) as raised:
        check_groups("m.mindir", used, context(ranks))
    return str(raised.value)


def test_a_model_of_one_rank_cannot_compute_with_others() -> None:
    check_groups("m.mindir", [], context(1))
    assert "together with other ranks (AllReduce in the group 'hccl_world_group'), and this model has one" in error(
        1, REDUCE
    )


def test_ranks_that_have_not_met() -> None:
    assert "call init_parallel(context) instead of setup()" in error(2, REDUCE)


def test_the_group_of_all_ranks_by_any_of_its_names() -> None:
    meet(2)
    for name in ("hccl_world_group", "mccl_world_group", "nccl_world_group"):
        check_groups("m.mindir", [Collective("AllGather", name, 2)], context(2))


def test_a_group_that_does_not_exist() -> None:
    meet(2)
    message = error(2, Collective("AllReduce", "2-77"))
    assert (
        "this rank does not know the group '2-77' (known: mccl_world_group). Export it with the group of all" in message
    )


def test_a_file_for_another_number_of_ranks() -> None:
    """MindSpore itself gives wrong numbers."""
    meet(2)
    assert error(2, REDUCE, Collective("AllGather", "mccl_world_group", 4)).startswith(
        "m.mindir was exported for 4 ranks, and its group has 2: "
    )


def test_the_group_is_called_what_it_is_called_here(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    path = folder / "m.mindir"
    path.write_bytes((DATA / "allreduce.mindir").read_bytes())
    (folder / "m_variables").mkdir()
    (folder / "m_variables" / "data_0").write_bytes(b"weights")
    meet(2)
    with with_own_groups(path, [REDUCE]) as copy:
        assert copy != path
        assert read_collectives(copy) == [Collective("AllReduce", "mccl_world_group")]
        assert (copy.parent / "m_variables" / "data_0").read_bytes() == b"weights"
    assert not copy.exists()
    assert read_collectives(path) == [REDUCE], "the archive stays as it is"


@pytest.mark.mindspore
def test_an_encrypted_file_stays_encrypted(tmp_path: Path) -> None:
    pytest.importorskip("mindspore")
    path, key = tmp_path / "m.mindir", Decryption(b"k" * 16, "AES-GCM")
    path.write_bytes(encrypted((DATA / "allreduce.mindir").read_bytes(), key))
    meet(2)
    with with_own_groups(path, [REDUCE], key) as copy:
        assert copy.read_bytes()[:4] == path.read_bytes()[:4]
        assert read_encrypted(copy, key)[1] == [Collective("AllReduce", "mccl_world_group")]


def test_a_file_with_the_names_of_here_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "absent.mindir"
    for world in ([], ["hccl_world_group"]):
        for name in world:
            meet(2, name)
        with with_own_groups(path, [REDUCE, Collective("AllReduce", "tp-0")]) as same:
            assert same == path


def test_collectives_are_counted_before_each_call() -> None:
    meet(2)
    run = counted(lambda x: (x, collectives.counts()), [REDUCE, REDUCE, Collective("AllGather", "mccl_world_group")])
    assert run(5) == (5, {"all_reduce[0,1]": 2, "all_gather[0,1]": 1})
    run(5)
    assert collectives.counts() == {"all_reduce[0,1]": 4, "all_gather[0,1]": 2}
