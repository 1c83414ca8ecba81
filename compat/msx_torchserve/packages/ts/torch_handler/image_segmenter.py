"""`ts.torch_handler.image_segmenter`: the class of each pixel."""

from typing import Any

from .._extras import need
from ._image_processing import IMAGENET
from .base_handler import results
from .vision_handler import VisionHandler


class ImageSegmenter(VisionHandler):
    """Answers each image with [height, width, 2]: the most probable class of each pixel, and its probability."""

    overlap = True
    image_processing: Any = IMAGENET

    def postprocess(self, data: Any) -> list[Any]:
        """`data` is the model's output, a dict with the logits [batch, class, height, width] at `out`."""
        answers: list[Any] = results(data, self, ImageSegmenter).tolist()
        return answers

    def _reduced(self, data: Any) -> Any:
        torch = need("torch")
        logits = data["out"] if isinstance(data, dict) else data
        best, classes = torch.nn.functional.softmax(logits, dim=1).max(dim=1)
        return torch.stack([classes.to(best.dtype), best], dim=3)
