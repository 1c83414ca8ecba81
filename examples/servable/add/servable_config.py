"""A servable with three methods: Python alone, a model alone, and a model between functions."""

import numpy as np
from mindspore_serving.server import register

model = register.declare_model(model_file="add.mindir", model_format="MindIR")


def to_float(x1, x2):
    """One instance: an array an input."""
    return x1.astype(np.float32), x2.astype(np.float32)


def rounded(instances):
    """Up to eight instances, each a tuple of its inputs; one result each."""
    for (y,) in instances:
        yield np.round(y)


def join(first, second):
    return first + second


@register.register_method(output_names=["text"])
def join_texts(first, second):
    """Two texts, one after the other."""
    return register.add_stage(join, first, second, outputs_count=1)


@register.register_method(output_names=["y"])
def add(x1, x2):
    """The sum of two rows of four numbers, float32."""
    return register.add_stage(model, x1, x2, outputs_count=1)


@register.register_method(output_names=["y"])
def add_any(x1, x2):
    """The sum of two rows of four numbers of any type, rounded."""
    x1, x2 = register.add_stage(to_float, x1, x2, outputs_count=2)
    y = register.add_stage(model, x1, x2, outputs_count=1)
    return register.add_stage(rounded, y, outputs_count=1, batch_size=8, tag="Rounding")
