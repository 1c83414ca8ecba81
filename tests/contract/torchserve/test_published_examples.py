"""TorchServe's MNIST and workflow examples, made anew: over HTTP, from archives as its own archivers write them.

contract#default-handlers
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import pytest

from tests.contract.torchserve.setup import Setup
from tests.e2e.server import RunningServer
from tests.torch_archiver import torch_archive, torch_workflow
from tests.torch_models import EXAMPLES, SERVICES, Colours, cnn, digit_image, digit_of, png, saved, scripted

pytestmark = [pytest.mark.e2e, pytest.mark.torch]

Files: TypeAlias = dict[str, bytes | str]

SPEC = """
models:
  min-workers: 1
  max-workers: 1
  batch-size: 1
  max-batch-delay: 5000
  retry-attempts: 1
  timeout-ms: 60000
  first_model: {url: names.mar}
  second_model: {url: names.mar}
dag:
  pre_processing: [first_model, second_model]
  first_model: [aggregate_func]
  second_model: [aggregate_func]
"""


def prepare(store: Path) -> None:
    digits: Files = {
        "mnist.py": (EXAMPLES / "mnist.py").read_text(),
        "cnn_model.py": (SERVICES / "cnn_model.py").read_text(),
        "digits.pt": saved(cnn().state_dict()),
    }
    torch_archive(store, "mnist", digits, handler="mnist.py", modelFile="cnn_model.py", serializedFile="digits.pt")
    names: Files = {"breeds.py": (EXAMPLES / "breeds.py").read_text(), "colours.pt": scripted(Colours())}
    torch_archive(store, "names", names, handler="breeds.py", serializedFile="colours.pt")
    workflow: Files = {"breeds_workflow.py": (EXAMPLES / "breeds_workflow.py").read_text(), "spec.yaml": SPEC}
    torch_workflow(store, "breeds", workflow, "spec.yaml", "breeds_workflow.py")


SERVER = Setup(prepare=prepare, load=("mnist=mnist.mar",))


def test_mnist(server: RunningServer) -> None:
    image = digit_image(3)
    answer = digit_of(cnn(), image, 0.1307, 0.3081)
    reply = server.predict("mnist", image)
    assert (reply.status_code, reply.json()) == (200, answer)
    as_field = server.inference.post("/predictions/mnist", files={"data": ("3.png", image, "image/png")})
    assert as_field.json() == answer
    assert server.management.delete("/models/mnist").status_code == 200


@pytest.mark.usefixtures("nothing_registered")
def test_workflow(server: RunningServer) -> None:
    """A node before two models, which get images as base64, and one behind them, which reads their JSON."""
    reply = server.management.post("/workflows", params={"url": "breeds.war"})
    assert reply.status_code == 200, reply.text
    reply = server.inference.post("/wfpredict/breeds", content=png("red"))
    assert (reply.status_code, reply.json()) == (200, {"first": "cat", "second": "cat"})
    assert server.management.delete("/workflows/breeds").status_code == 200
