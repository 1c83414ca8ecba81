"""The example of a workflow: cats and dogs, and the breeds of the dogs."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.torch.examples.readme import Files, Readme
from tests.torch.examples.weights import model_of, weights
from tests.torch_models import png, saved, torch

transforms = pytest.importorskip("torchvision.transforms")

pytestmark = [pytest.mark.torch, pytest.mark.e2e]

FOLDER = "examples/Workflows/dog_breed_classification"
BREEDS = json.dumps({str(number): f"breed {number}" for number in range(6)})
SPEC = """
models:
  min-workers: 1
  max-workers: 1
  batch-size: 4
  max-batch-delay: 100
  retry-attempts: 5
  timeout-ms: 300000
  cat_dog_classification: {url: cat_dog_classification.mar}
  dog_breed_classification: {url: dog_breed_classification.mar}
dag:
  pre_processing: [cat_dog_classification, dog_breed_classification]
  cat_dog_classification: [dog_breed_classification]
"""
FILES: Files = {
    "cat_dog_classification_arch.py": "cat_dog_model.py",
    "cat_dog_classification_handler.py": "cats_and_dogs.py",
    "dog_breed_classification_arch.py": "breed_model.py",
    "dog_breed_classification_handler.py": "breeds.py",
    "workflow_dog_breed_classification_handler.py": "breeds_workflow.py",
    "workflow_dog_breed_classification.yaml": SPEC,
    "index_to_name.json": BREEDS,
}
CAT, DOG = png("blue"), png("orange")


def seen(image: bytes) -> Any:
    """The image as the classifier gets it."""
    steps = [transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()]
    normal = transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
    return transforms.Compose([*steps, normal])(Image.open(io.BytesIO(image)))[None]


def that_tells_apart(network: Any) -> bytes:
    """Weights with a last bias half way between what is said of the two images."""
    with torch.inference_mode():
        cat, dog = (row[1] - row[0] for row in (network(seen(image))[0] for image in (CAT, DOG)))
        last = network.fc[-1]
        if dog < cat:
            last.weight.neg_()
            last.bias.neg_()
            cat, dog = -cat, -dog
        last.bias[1] -= (cat + dog) / 2
    return saved(network.state_dict())


def test_dog_breed_classification(tmp_path: Path) -> None:
    readme = Readme(tmp_path, {f"{FOLDER}/{name}": file for name, file in FILES.items()})
    here = tmp_path / FOLDER
    readme.write(
        f"{FOLDER}/cat_dog_classification.pth", that_tells_apart(model_of(here / "cat_dog_classification_arch.py"))
    )
    readme.write(f"{FOLDER}/dog_breed_classification.pth", weights(here / "dog_breed_classification_arch.py"))
    both = [
        f"torch-model-archiver -f --model-name {name} --version 1.0 --model-file {name}_arch.py --serialized-file "
        f"{here}/{name}.pth --handler {name}_handler.py {extra} --export-path model_store"
        for name, extra in (
            ("cat_dog_classification", ""),
            ("dog_breed_classification", "--extra-files index_to_name.json"),
        )
    ]
    workflow = "torch-workflow-archiver -f --workflow-name dog_breed_wf --spec-file "
    workflow += "workflow_dog_breed_classification.yaml --handler workflow_dog_breed_classification_handler.py"
    readme.types("mkdir model_store wf_store", *both, f"{workflow} --export-path wf_store/", folder=FOLDER)
    start = "torchserve --start --model-store model_store/ --workflow-store wf_store/ --ncs --disable-token-auth"
    with readme.serves(f"{start} --enable-model-api", folder=FOLDER) as served:
        registered = served.management.post("/workflows?url=dog_breed_wf.war")
        assert registered.json() == {"status": "Workflow dog_breed_wf has been registered and scaled successfully."}
        assert served.sends("/wfpredict/dog_breed_wf", CAT).text == "It's a cat!"
        breeds = served.sends("/wfpredict/dog_breed_wf", DOG).json()
        gone = served.management.delete("/workflows/dog_breed_wf")
        assert gone.json() == {"status": 'Workflow "dog_breed_wf" unregistered'}
    known = json.loads(readme.read(f"{FOLDER}/index_to_name.json")).values()
    assert len(breeds) == 5
    assert set(breeds) <= set(known)
