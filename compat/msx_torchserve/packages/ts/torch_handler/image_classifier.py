"""`ts.torch_handler.image_classifier`: the most probable classes of each image."""

from typing import Any

from .._extras import need
from ..handler_utils.timer import timed
from ..utils.util import map_class_to_label
from ._image_processing import IMAGENET
from .base_handler import results
from .vision_handler import VisionHandler


class ImageClassifier(VisionHandler):
    """`{label: probability}` of the `topk` best, most probable first; the model gives logits."""

    overlap = True
    topk = 5
    image_processing: Any = IMAGENET

    def set_max_result_classes(self, topk: int) -> None:
        self.topk = topk

    def get_max_result_classes(self) -> int:
        return self.topk

    @timed
    def postprocess(self, data: Any) -> list[dict[Any, float]]:
        best, classes = results(data, self, ImageClassifier)
        return map_class_to_label(best.tolist(), self.mapping, classes.tolist())

    def _reduced(self, data: Any) -> Any:
        probabilities = need("torch").nn.functional.softmax(data, dim=1)
        return probabilities.topk(min(self.topk, probabilities.shape[1]), dim=1)
