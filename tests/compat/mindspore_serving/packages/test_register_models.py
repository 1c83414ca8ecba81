"""declare_model, contexts and device infos: what they take, and their texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compat.mindspore_serving.packages.servables import declared, refused

METHOD = """
@register_method("y")
def predict(x):
    return x
"""


def test_a_model_is_described(tmp_path: Path) -> None:
    source = """
    context = Context(thread_num=2, thread_affinity_core_list=[0, 1], enable_parallel=True)
    context.append_device_info(CPUDeviceInfo(precision_mode="fp16"))
    model = declare_model(["a.mindir", "b.mindir"], "MindIR", without_batch_dim_inputs=1, context=context)
    """
    servable = declared(tmp_path, f"{source}\n    @register_method('y')\n    def predict(x):\n        return x\n")
    model = servable.models["a.mindir;b.mindir"].declaration
    assert (model.files, model.format, model.with_batch_dim) == (("a.mindir", "b.mindir"), "mindir", True)
    assert model.without_batch_dim_inputs == (1,)
    assert model.context.thread_num == 2
    assert model.context.device_infos["cpu"].given == {"precision_mode": "fp16"}


@pytest.mark.parametrize(("given", "kept"), [("0", ()), ("None", ()), ("()", ()), ("(0,)", (0,)), ("[1, 2]", (1, 2))])
def test_inputs_without_batch_dimension(tmp_path: Path, given: str, kept: tuple[int, ...]) -> None:
    servable = declared(tmp_path, f"declare_model('a', 'MindIR', without_batch_dim_inputs={given})\n{METHOD}")
    assert servable.models["a"].declaration.without_batch_dim_inputs == kept


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("declare_servable('a', 'MindIR')", ["'declare_servable' is deprecated from version 1.5.0", ".declare_model'"]),
        ("AclOptions()", ["'AclOptions' is deprecated from version 1.6.0", ".AscendDeviceInfo'"]),
        ("GpuOptions()", ["'GpuOptions' is deprecated from version 1.6.0", ".GPUDeviceInfo'"]),
    ],
)
def test_deprecated_names(tmp_path: Path, caplog: pytest.LogCaptureFixture, line: str, words: list[str]) -> None:
    declared(tmp_path, f"{line}\n{METHOD}")
    begin, instead = words
    assert caplog.messages == [
        f"{begin} and will be removed in a future version, use 'mindspore_serving.server.register{instead} instead."
    ]


def test_a_deprecated_declaration_is_one(tmp_path: Path) -> None:
    servable = declared(tmp_path, f"declare_servable('a.mindir', 'MindIR', with_batch_dim=False)\n{METHOD}")
    assert not servable.models["a.mindir"].declaration.with_batch_dim


@pytest.mark.parametrize(("more", "warned"), [("", True), (", context=Context()", False)])
def test_options_are_deprecated(tmp_path: Path, caplog: pytest.LogCaptureFixture, more: str, warned: bool) -> None:
    declared(tmp_path, f"declare_model('a', 'MindIR', options=AclOptions(){more})\n{METHOD}")
    assert ("'options' will be deprecated in the future, we recommend using 'context'" in caplog.text) == warned


CAN_ONLY = "Ascend device info '{}' can only be {}, actually given 'x'"

REFUSALS = {
    "declare_model(1, 'MindIR')": (
        "Parameter 'model_file' should be str or tuple/list of str, but actually <class 'int'>"
    ),
    "declare_model('', 'MindIR')": "The item of parameter 'model_file' should not be empty str",
    "declare_model([], 'MindIR')": "Raise failed: Declare model failed, model files size cannot be 0",
    "declare_model(['a', 'a'], 'MindIR')": "The item value 'a' in parameter 'model_file' should not be repeated",
    "declare_model('a', 'onnx')": "model format can only be OM, MindIR or MindIR_Lite, case ignored",
    "declare_model('a', 'om', with_batch_dim=1)": (
        "Parameter 'with_batch_dim' should be bool, but actually <class 'int'>"
    ),
    "declare_model('a', 'om', without_batch_dim_inputs=-1)": (
        "The item value '-1' in parameter 'without_batch_dim_inputs' should be >= 0"
    ),
    "declare_model('a', 'om', context=1)": "Parameter 'context' should be Context, but gotten <class 'int'>",
    "declare_model('a', 'om', options=1)": (
        "Parameter 'options' should be None, GpuOptions or AclOptions, but gotten <class 'int'>"
    ),
    "declare_model('a', 'om', config_file='')": "Parameter 'config_file' should not be empty str",
    "declare_model('a', 'om'); declare_model(('b', 'a'), 'om')": (
        "Raise failed: Declare model [b, a] failed, model file 'a' has already been used"
    ),
    "Context(threads=1)": "Set context failed, unsupported option threads",
    "Context(thread_num=0)": "Parameter 'thread_num' should be >= 1",
    "Context(thread_affinity_core_list=1)": (
        "Parameter 'thread_affinity_core_list' should be tuple/list of int, but actually <class 'int'>"
    ),
    "Context(thread_affinity_core_list=[1, 1])": (
        "The item value '1' in parameter 'thread_affinity_core_list' should not be repeated"
    ),
    "Context(enable_parallel=1)": "Parameter 'enable_parallel' should be bool, but actually <class 'int'>",
    "Context().append_device_info(1)": (
        "Parameter 'device_info' should instance of CPUDeviceInfo, GPUDeviceInfo, or AscendDeviceInfo, but actually "
        "<class 'int'>"
    ),
    "c = Context(); c.append_device_info(CPUDeviceInfo()); c.append_device_info(CPUDeviceInfo())": (
        "Device info of type cpu has already been appended"
    ),
    "CPUDeviceInfo(precision_mode='x')": ("Cpu device info 'precision_mode' can only be 'origin', 'fp16'. given 'x'"),
    "GPUDeviceInfo(precision_mode='x')": ("Gpu device info 'precision_mode' can only be 'origin', 'fp16'. given 'x'"),
    "GpuOptions(x='')": "Set gpu device info failed, unsupported option x",
    "CPUDeviceInfo(x='')": "Set cpu device info failed, unsupported option x",
    "AclOptions(x='')": "Set ascend device info failed, unsupported parameter x",
    "AscendDeviceInfo(input_shape=1)": "Parameter 'input_shape' should be str, but actually <class 'int'>",
    "AscendDeviceInfo(input_format='x')": CAN_ONLY.format(
        "input_format", "'ND', 'NCHW', 'NHWC', 'CHWN', 'NC1HWC0', or 'NHWC1C0'"
    ),
    "AscendDeviceInfo(output_type='x')": CAN_ONLY.format("op_select_impl_mode", "'FP32'(default), 'FP16' or 'UINT8'"),
    "AscendDeviceInfo(precision_mode='x')": CAN_ONLY.format(
        "precision_mode",
        "'force_fp16'(default), 'allow_fp32_to_fp16' 'must_keep_origin_dtype' or 'allow_mix_precision'",
    ),
    "AscendDeviceInfo(op_select_impl_mode='x')": CAN_ONLY.format(
        "op_select_impl_mode", "'high_performance'(default) or 'high_precision'"
    ),
    "AscendDeviceInfo(buffer_optimize_mode='x')": CAN_ONLY.format(
        "buffer_optimize_mode", "'off_optimize'(default), 'l1_optimize', 'l2_optimize' or 'l1_and_l2_optimize'"
    ),
}


@pytest.mark.parametrize("source", REFUSALS)
def test_what_is_refused(tmp_path: Path, source: str) -> None:
    assert refused(tmp_path, source) == REFUSALS[source]
