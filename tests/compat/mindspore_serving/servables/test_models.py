"""Methods with MindIR models: batches, subgraphs, Model.call, encryption, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from msx_sdk.errors import HandlerLoadError
from msx_sdk.testing import LocalModel
from tests.compat.mindspore_serving.packages.servables import write
from tests.compat.mindspore_serving.servables.calling import call
from tests.compat.mindspore_serving.servables.conftest import KEY

np = pytest.importorskip("numpy")
pytestmark = pytest.mark.mindspore

ADD = """
model = declare_model({files}, "MindIR"{more})
def minus(x):
    if x[0] < 0:
        raise ValueError("negative")
    return -x
@register_method("z")
def add(x, y):
    z = add_stage(model, x, y, outputs_count=1)
    z = add_stage(minus, z, outputs_count=1)
    return z
"""


def models(folder: Path, mindirs: Path, source: str, **config: Any) -> LocalModel:
    root = write(folder, source)
    version = root / "1"
    version.mkdir(exist_ok=True)
    for file in mindirs.glob("*.mindir"):
        if not (version / file.name).exists():
            os.link(file, version / file.name)
    manifest = {"model": {"modelName": "add", "modelVersion": "1"}}
    return LocalModel("servable", root, name="add", manifest=manifest, config={"servable": config})


def row(*numbers: float) -> Any:
    return np.float32(numbers)


def values(answers: list[Any], name: str = "z") -> list[Any]:
    return [answer[name].tolist() if isinstance(answer, dict) else answer for answer in answers]


@pytest.mark.parametrize("file", ["add", "open"])
def test_instances_are_batched_and_padded(tmp_path: Path, mindirs: Path, file: str) -> None:
    with models(tmp_path, mindirs, ADD.format(files=f"'{file}.mindir'", more="")) as model:
        instances = [{"x": row(n, n, n), "y": row(1, 2, 3)} for n in (1, 2, -5, 4, 5)]
        failed = "Call Function 'add.minus' Failed, method: 'add', stage index(begin with 1): 2, error msg: negative"
        assert values(call(model, "add", instances)) == [
            [-2, -3, -4],
            [-3, -4, -5],
            ("3", failed),
            [-5, -6, -7],
            [-6, -7, -8],
        ]
        names = [one.name for one in model.handler.owner.offered_methods()]
        assert names == ["add", f"@call_{file}.mindir_0"]
        assert values(call(model, names[1], [{"x0": row(1, 1, 1), "x1": row(1, 1, 1)}]), "y0") == [[2, 2, 2]]


def test_inputs_that_do_not_fit(tmp_path: Path, mindirs: Path) -> None:
    good = {"x": row(1, 2, 3), "y": row(1, 1, 1)}
    bad = [
        ({"x": row(1, 2)}, "Given model input 0 size 8 not match the size 12 defined in model"),
        ({"y": "abc"}, "Given model input 1 size 3 not match the size 12 defined in model"),
        (
            {"y": np.int32([1, 2, 3])},
            "Given model input 1 data type kMSI_Int32 not match the data type kMSI_Float32 defined in model",
        ),
        (
            {"x": "a" * 12},
            "Given model input 0 data type kMSI_String not match the data type kMSI_Float32 defined in model",
        ),
    ]
    with models(tmp_path, mindirs, ADD.format(files="'add.mindir'", more="")) as model:
        answers = values(call(model, "add", [good, *({**good, **change} for change, _ in bad), good]))
        assert answers == [[-2, -3, -4], *(("2", text) for _, text in bad), [-2, -3, -4]]
        shape = {"x": np.float32([[1], [2], [3]]), "y": row(1, 1, 1)}
        assert values(call(model, "add", [shape])) == [[-2, -3, -4]], "only the number of bytes is compared"


def test_without_batch_dimension(tmp_path: Path, mindirs: Path) -> None:
    more = ", with_batch_dim=False"
    source = ADD.format(files="'add.mindir'", more=more).replace("x[0]", "x[0][0]")
    with models(tmp_path, mindirs, source) as model:
        x = np.ones((2, 3), np.float32)
        assert values(call(model, "add", [{"x": x, "y": x * n} for n in (1, 2)])) == [
            [[-2.0] * 3] * 2,
            [[-3.0] * 3] * 2,
        ]


SCALE = """
model = declare_model("scale.mindir", "MindIR", without_batch_dim_inputs=1)
@register_method(["y", "sum"])
def scale(x, factor):
    return add_stage(model, x, factor, outputs_count=2)
"""


def test_an_input_without_batch_dimension(tmp_path: Path, mindirs: Path) -> None:
    with models(tmp_path, mindirs, SCALE) as model:
        answers = call(model, "scale", [{"x": row(n, n, 1), "factor": row(2)} for n in (1, 2)])
    assert values(answers, "y") == [[2, 2, 2], [4, 4, 2]]
    assert (answers[0]["sum"].shape, values(answers, "sum")) == ((), [6, 10])


CALLS = """
model = declare_model(["add.mindir", "again.mindir"], "MindIR")
def call_one(x):
    return model.call(x, x)
def call_all(instances):
    for (y,) in model.call([[one[0], one[0]] for one in instances], subgraph=1):
        yield y
def call_wrongly(x):
    return model.call(x) if x[0] else model.call(x[:1], x)
@register_method(["y", "z"])
def twice(x):
    y = add_stage(call_one, x, outputs_count=1)
    z = add_stage(call_all, x, outputs_count=1, batch_size=4)
    return y, z
@register_method("y")
def wrong(x):
    y = add_stage(call_wrongly, x, outputs_count=1)
    return y
"""


@pytest.mark.parametrize("processes", [0, 2])
def test_functions_call_models(tmp_path: Path, mindirs: Path, processes: int) -> None:
    with models(tmp_path, mindirs, CALLS, functionProcesses=processes) as model:
        answers = call(model, "twice", [{"x": row(n, n, n)} for n in (1, 2, 3)])
        assert values(answers, "y") == values(answers, "z") == [[2, 2, 2], [4, 4, 4], [6, 6, 6]]
        failed = (
            "Call Function 'add.call_wrongly' Failed, method: 'wrong', stage index(begin with 1): 1, error msg: "
            "Model(add.mindir;again.mindir).call() failed: "
        )
        assert call(model, "wrong", [{"x": row(n, 0, 0)} for n in (1, 0)]) == [
            ("3", f"{failed}The inputs count 1 of instance 0 is not equal to the inputs count 2 of the model"),
            ("3", f"{failed}Given model input 0 size 4 not match the size 12 defined in model"),
        ]


def test_contexts_and_device_infos(tmp_path: Path, mindirs: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = """
context = Context(enable_parallel=True, thread_affinity_core_list=[4000])
context.append_device_info(AscendDeviceInfo(precision_mode="force_fp16", input_format="NCHW"))
"""
    more = ", context=context, options=GpuOptions(precision_mode='fp16'), config_file='lite.cfg'"
    with models(tmp_path, mindirs, before + ADD.format(files="'add.mindir'", more=more)) as model:
        assert values(call(model, "add", [{"x": row(1, 2, 3), "y": row(1, 1, 1)}])) == [[-2, -3, -4]]
    assert [line for line in caplog.messages if "effect" in line] == [
        "thread_affinity_core_list [4000] has no effect: [Errno 22] Invalid argument",
        "declare_model: ascend input_format, ascend precision_mode, config_file, enable_parallel, gpu precision_mode: "
        "accepted, without effect on this server",
    ]


def encrypted(folder: Path, key: bytes) -> dict[str, Any]:
    file = folder / f"key{len(key)}{key[:1].hex()}"
    file.write_bytes(key)
    return {"decKeyFile": str(file)}


def test_an_encrypted_model(
    tmp_path: Path, mindirs: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")  # an encrypted model might have convolutions
    source = ADD.format(files="'secret.mindir'", more="")
    with models(tmp_path, mindirs, source, **encrypted(tmp_path, KEY)) as model:
        assert values(call(model, "add", [{"x": row(1, 2, 3), "y": row(1, 1, 1)}])) == [[-2, -3, -4]]
    for config, words in [
        (
            encrypted(tmp_path, KEY[::-1]),
            "secret.mindir cannot be decrypted: it is not encrypted, or with another key or mode",
        ),
        ({}, "is an encrypted MindIR file"),
        ({"decKeyFile": "key"}, "'key' is not an absolute path; a key does not belong in an archive"),
        ({"decKeyFile": str(tmp_path / "absent")}, "cannot be read: No such file or directory"),
        (encrypted(tmp_path, KEY[1:]), "does not hold a key of 16, 24 or 32 bytes"),
    ]:
        assert words in refused(tmp_path, mindirs, source, **config)
    assert KEY.decode() not in caplog.text


def refused(folder: Path, mindirs: Path, source: str, **config: Any) -> str:
    with pytest.raises(HandlerLoadError) as caught, models(folder, mindirs, source, **config):
        pass
    assert KEY.decode() not in str(caught.value)
    return str(caught.value)


LOAD_FAILED = (
    "Raise failed: Load model failed, servable directory: '{0}', servable name: 'add', model file: '[{1}]', version "
    "number 1,model context: {{}}, load error details: "
)


def test_what_is_refused_at_loading(tmp_path: Path, mindirs: Path) -> None:
    def with_add(files: str, more: str = "") -> str:
        return refused(tmp_path, mindirs, ADD.format(files=files, more=more))

    assert with_add("'absent.mindir'") == (
        LOAD_FAILED.format(tmp_path, "absent.mindir") + "the file 'absent.mindir' is not in the folder of version 1"
    )
    assert "the file '/etc/passwd' is not in the folder" in with_add("'/etc/passwd'")
    assert with_add("['add.mindir', 'other.mindir']") == (
        "Raise failed: Expect batch size to be same, last batch size: 2, current batch size: 3"
    )
    assert with_add("'scale.mindir'") == (
        "Raise failed: The outputs count 1 in register_method not equal to the count 2 defined in model, model info: "
        "scale.mindir, subgraph: 0"
    )
    assert refused(tmp_path, mindirs, SCALE.replace(", without_batch_dim_inputs=1", "")) == (
        "Raise failed: The shape [1] of model input 1 does not match current batch size 4"
    )
    for form in ("OM", "MindIR_Lite"):
        other = ADD.format(files="'add.mindir'", more="").replace('"MindIR"', f'"{form}"')
        assert refused(tmp_path, mindirs, other) == (
            f"Raise failed: Not support device type None and model type {form}. Current inference backend: MindSpore. "
            "Export the model as MindIR."
        )


def test_no_folder_of_the_version(tmp_path: Path) -> None:
    root = write(tmp_path, ADD.format(files="'add.mindir'", more=""))
    manifest = {"model": {"modelName": "add", "modelVersion": "1"}}

    def load() -> str:
        with pytest.raises(HandlerLoadError) as caught, LocalModel("servable", root, name="add", manifest=manifest):
            pass
        return str(caught.value)

    assert load() == (
        "There is no valid version directory of models while there are models declared in servable_config.py, servable "
        f"directory: {tmp_path}, servable name: add"
    )
    (root / "2").mkdir()
    assert load() == (
        "Raise failed: Start servable failed: There is no specified version directory of models, specified version "
        f"number: 1, servable directory: '{tmp_path}', servable name: 'add'"
    )
