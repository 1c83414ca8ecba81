"""Warnings and refusals at packing of what cannot run in a group."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from msx_archiver.errors import PackError
from msx_archiver.options import PackOptions
from msx_archiver.sources import collect
from tests.archiver.conftest import write_folder
from tests.core.test_group_config import group as ranks_of
from tests.core.test_mindir import DATA
from tests.core.test_mindir_collectives import graph, primitive

InFolder = Callable[..., Path]
REDUCES = (DATA / "allreduce.mindir").read_bytes()
PLAIN = (DATA / "dynamic.mindir").read_bytes()
OTHER = (DATA / "two.mindir").read_bytes()
ASYNC = b"async def handle(data, context):\n    return data\n"


def group(kind: str = "tp", ranks: int = 2) -> bytes:
    split = "parallel: {pipelineStages: 2, tensorParallel: 2}\n" if kind == "pptp" else ""
    return f"parallelType: {kind}\nmsrun: {{nproc-per-node: {4 if split else ranks}}}\n{split}".encode()


def with_collective(operator: str, **attributes: str | int) -> bytes:
    return graph("REF::R") + primitive("R", operator, **attributes)


def packed(
    handler: str, serialized_file: str | None = None, config: bool = True, extra_files: str | None = None
) -> list[str]:
    """The warnings."""
    options = PackOptions(
        model_name="m",
        handler=handler,
        serialized_file=serialized_file,
        config_file="c.yaml" if config else None,
        model_file="net.py" if handler == "checkpoint" else None,
        extra_files="config.json,tokenizer.json" if handler == "text_generation" else extra_files,
    )
    return collect(options, Path("made")).warnings


def refused(
    handler: str, serialized_file: str | None = None, config: bool = True, extra_files: str | None = None
) -> str:
    with pytest.raises(PackError) as caught:
        packed(handler, serialized_file, config, extra_files)
    return str(caught.value)


@pytest.fixture
def folder(in_folder: InFolder) -> Path:
    files = {"net__py": b"class Net(nn.Cell): ...", "w__ckpt": b"", "c__yaml": group()}
    return in_folder(**files, config__json=b"{}", tokenizer__json=b"{}")


@pytest.mark.parametrize("kind", ["pp", "pptp"])
@pytest.mark.parametrize(
    ("handler", "file"),
    [("mindir", "d.mindir"), ("checkpoint", "w.ckpt"), ("image_classifier", "w.ckpt"), ("embedding", None)],
)
def test_built_in_handlers(folder: Path, handler: str, file: str | None, kind: str) -> None:
    write_folder(folder, {"c.yaml": group(kind), "d.mindir": PLAIN})
    said = refused(handler, file)
    assert said.startswith(f"Handler '{handler}' ")
    assert f"model-config.yaml says {'parallelType: ' if handler == 'embedding' else ''}{kind}: " in said


def test_those_that_run(folder: Path) -> None:
    write_folder(folder, {f"d{rank}/m.mindir": REDUCES for rank in range(2)})
    assert packed("mindir", "d{rank}/m.mindir") == []
    assert packed("checkpoint", "w.ckpt") == []
    write_folder(folder, {"c.yaml": group("pptp")})
    assert packed("text_generation") == []
    write_folder(folder, {"w.pt": b""})
    assert packed("image_classifier", "w.pt") == [], "TorchServe's"


def test_one_file_for_all_ranks_is_odd(folder: Path) -> None:
    write_folder(folder, {"d.mindir": PLAIN})
    assert packed("mindir", "d.mindir") == ["All 2 ranks load d.mindir; with '{rank}' in its name each has its own."]


@pytest.mark.parametrize(("files", "ranks"), [(2, 4), (4, 2), (2, 1)])
def test_as_many_files_as_ranks(folder: Path, files: int, ranks: int) -> None:
    write_folder(folder, {f"m{rank}.mindir": PLAIN for rank in range(files)})
    write_folder(folder, {"c.yaml": group(ranks=ranks)})
    number = "1 rank" if ranks == 1 else f"{ranks} ranks"
    assert refused("mindir", "m{rank}.mindir") == (
        f"--serialized-file: there are {files} files 'm{{rank}}.mindir', and the model has {number}: give "
        f"parallelType: tp and msrun: {{nproc-per-node: {files}}} in --config-file."
    )


def test_a_mindir_that_needs_others(folder: Path) -> None:
    write_folder(folder, {"m.mindir": REDUCES})
    said = refused("mindir", "m.mindir", config=False)
    assert "m.mindir computes together with other ranks (AllReduce in the group 'hccl_world_group'), and the" in said


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (OTHER, "takes a: float32[2, 3], b: int64[2], and m0.mindir x: float32[-1, 4]: all ranks get the same."),
        (with_collective("AllReduce", group="2-77"), "(AllReduce in the group '2-77'), which the server does not make"),
        (
            with_collective("AllGather", group="mccl_world_group", rank_size=4),
            "m1.mindir was exported for 4 ranks, and the model has 2 ranks.",
        ),
    ],
)
def test_what_the_mindirs_of_a_group_have_in_common(folder: Path, second: bytes, words: str) -> None:
    write_folder(folder, {"m0.mindir": PLAIN, "m1.mindir": second})
    assert words in refused("mindir", "m{rank}.mindir")


def test_groups_that_are_packed_with_the_models(folder: Path) -> None:
    """The server makes them before it loads the models."""
    second = with_collective("AllReduce", group="2-77", rank_size=2)
    write_folder(folder, {"m0.mindir": second, "m1.mindir": second, "group_config.pb": ranks_of("2-77", 0, 1)})
    assert packed("mindir", "m{rank}.mindir", extra_files="group_config.pb") == []
    assert "--extra-files group_config.pb, the file of groups" in refused("mindir", "m{rank}.mindir")
    write_folder(folder, {"group_config.pb": ranks_of("2-77", 0, 1, 2)})
    said = refused("mindir", "m{rank}.mindir", extra_files="group_config.pb")
    assert said == "m0.mindir was exported for 2 ranks, and the group '2-77' has 3 ranks."
    write_folder(folder, {"group_config.pb": b"{}"})
    assert "is not a file of groups" in refused("mindir", "m{rank}.mindir", extra_files="group_config.pb")


def test_a_handler_of_ones_own_says_where_it_runs(folder: Path) -> None:
    source = b"class H:\n    parallel_types = ('pp', 'pptp')\n    def handle(self, data, context): ...\n"
    write_folder(folder, {"h.py": source})
    assert refused("h.py").startswith("Handler 'h.py' runs on several ranks with parallelType: pp or pptp, and model-")
    write_folder(folder, {"c.yaml": group("pp")})
    assert packed("h.py") == []
    write_folder(folder, {"h.py": b"parallel_types: tuple[str, ...] = ()\ndef handle(data, context): ...\n"})
    assert "'h.py' serves models of one rank, and model-config.yaml says parallelType: pp" in refused("h.py")
    assert packed("h.py", config=False) == []


def test_its_files_are_its_own_affair(folder: Path) -> None:
    write_folder(folder, {"h.py": b"def handle(data, context): ...\n", "m0.mindir": REDUCES, "m1.mindir": OTHER})
    assert packed("h.py", "m{rank}.mindir", config=False) == []


@pytest.mark.parametrize(
    "source",
    [
        ASYNC,
        b"class H:\n    async def handle(self, data, context): ...\n",
        b"from msx_sdk import Handler\nclass H(Handler):\n    async def handle(self, data, context): ...\n",
    ],
)
def test_an_async_handler_that_cannot_be_led(folder: Path, source: bytes) -> None:
    write_folder(folder, {"h.py": source})
    assert "h.py: an async handler without follow(message) serves models of one rank" in refused("h.py")
    assert packed("h.py", config=False) == []


@pytest.mark.parametrize(
    "source",
    [
        ASYNC + b"def follow(message): ...\n",
        b"class H:\n    async def handle(self, data, context): ...\n    def follow(self, message): ...\n",
        b"from lib import Base\nclass H(Base):\n    async def handle(self, data, context): ...\n",
        b"def handle(data, context): ...\nasync def other(): ...\n",
        b"parallel_types = compute()\ndef handle(data, context): ...\n",
    ],
)
def test_those_that_can_or_may(folder: Path, source: bytes) -> None:
    write_folder(folder, {"h.py": source})
    assert packed("h.py") == []
