"""The deprecated call_preprocess, call_servable and call_postprocess."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compat.mindspore_serving.packages.servables import declared, refused

HEAD = """
{model}
def before(x):
    return x, x
def after(instances):
    return instances
@register_method("y")
def m(x):
    {lines}
"""
MODEL = "declare_model('a.mindir', 'MindIR')"


def method(*lines: str, model: str = MODEL) -> str:
    return HEAD.format(model=model, lines="\n    ".join(lines))


def test_outputs_are_counted_in_the_source(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """And each call is told to be deprecated."""
    source = method(
        "'''Says something.'''",
        "a, b = call_preprocess(before, x)",
        "c = call_servable(a, b)",
        "y = call_postprocess_pipeline(after, c)",
        "return y",
    )
    stages = declared(tmp_path, source).methods["m"].stages
    assert [(stage.tag, stage.outputs_count, stage.batch_size) for stage in stages] == [
        ("Preprocess", 2, None),
        ("Model 'a.mindir'", 1, None),
        ("Postprocess", 1, 0),
    ]
    assert caplog.messages == [
        f"'{name}' is deprecated from version 1.5.0 and will be removed in a future version, use "
        "'mindspore_serving.server.register.add_stage' instead."
        for name in ("call_preprocess", "call_servable", "call_postprocess_pipeline")
    ]


CHECK = "Check failed in method 'm', "
COMPLEX = (
    "Failed to parse method 'm', complex statements such as conditions and loops are not supported in register_method "
    "when the interface '{0}' is used, use 'add_stage' to replace '{0}'"
)
REFUSALS = {
    method("a = call_servable(x)", "y = call_servable(a)", "return y"): (
        f"{CHECK}call_servable should not be invoked more than once"
    ),
    method("a, b = call_preprocess(before, x)", "a, b = call_preprocess_pipeline(before, x)", "return a"): (
        f"{CHECK}call_preprocess or call_preprocess_pipeline should not be invoked more than once"
    ),
    method("a = call_postprocess(after, x)", "a = call_postprocess(after, x)", "return a"): (
        f"{CHECK}call_postprocess or call_postprocess_pipeline should not be invoked more than once"
    ),
    method("a = call_servable(x)", "a, b = call_preprocess_pipeline(before, x)", "return a"): (
        f"{CHECK}call_servable should be invoked after call_preprocess_pipeline"
    ),
    method("a = call_postprocess(after, x)", "a, b = call_preprocess(before, x)", "return a"): (
        f"{CHECK}call_postprocess or call_postprocess_pipeline should be invoked after call_preprocess"
    ),
    method("a = call_postprocess(after, x)", "a = call_servable(a)", "return a"): (
        f"{CHECK}call_postprocess or call_postprocess_pipeline should be invoked after call_servable"
    ),
    method("call = call_servable", "y = call(x)", "return y"): "Not find the invoke of 'call_servable'",
    method("a = call_preprocess()", "return a"): "Invalid 'call_preprocess' invoke args",
    method("y = call_servable(x)", "return y", model=""): (
        "There is no model declared, you can use declare_model to declare models."
    ),
    method("y = call_servable(x)", "return y", model=f"{MODEL}; declare_model('b', 'OM')"): (
        "There are more than one servable declared when the interface 'call_servable' is used, use 'add_stage' to "
        "replace 'call_servable'"
    ),
    method("y = call_servable(x)", "if y:", "    pass", "return y"): (
        COMPLEX.format("call_servable") + ", code If: line 4"
    ),
    method("a = call_preprocess(before, x)", "y = call_servable(a)", "if y:", "    pass", "return y"): (
        COMPLEX.format("call_preprocess;call_servable") + ", code If: line 5"
    ),
    method("if x:", "    y = call_servable(x)", "return y"): COMPLEX.format("call_servable"),
    method("return call_servable(x)"): COMPLEX.format("call_servable"),
    method("a = call_servable(x)", "y = add_stage(after, a, outputs_count=1, batch_size=0)", "return y"): (
        COMPLEX.format("call_servable") + ", code Assign: line 4"
    ),
    method("again = lambda: add_stage(after, x, outputs_count=1, batch_size=0)", "return again()").replace(
        "    return again", "    y = call_servable(x)\n    return again"
    ): COMPLEX.format("call_servable") + ", code Assign: line 3",
    method("y = call_servable(x)", "return x", "y = call_postprocess(after, y)"): (
        "Failed to parse method m, the number of stages obtained through the AST 2 is inconsistent with the running "
        "result 1. Condition and loop statements are not supported in methods currently."
    ),
}  # fmt: skip


@pytest.mark.parametrize("source", REFUSALS)
def test_what_is_refused(tmp_path: Path, source: str) -> None:
    assert refused(tmp_path, source) == REFUSALS[source]
