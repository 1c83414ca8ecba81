"""`ts.torch_handler.object_detector`: the objects on each image."""

from typing import Any

from ..utils.util import map_class_to_label
from ._image_processing import ImageProcessing
from .base_handler import results
from .vision_handler import VisionHandler


class ObjectDetector(VisionHandler):
    """`[{label: [left, top, right, bottom], "score": probability}, …]` of the objects above `threshold`."""

    overlap = True
    image_processing: Any = ImageProcessing()
    threshold = 0.5

    def postprocess(self, data: Any) -> list[list[dict[Any, Any]]]:
        """`data` is one dict an image, of `boxes`, `labels` and `scores`, as torchvision's detectors give."""
        return [self._objects(found) for found in results(data, self, ObjectDetector)]

    def _reduced(self, data: Any) -> Any:
        return [{name: found[name] for name in ("boxes", "labels", "scores")} for found in data]

    def _objects(self, found: dict[str, Any]) -> list[dict[Any, Any]]:
        objects = []
        for box, label, score in zip(
            found["boxes"].tolist(), found["labels"].tolist(), found["scores"].tolist(), strict=True
        ):
            if score >= self.threshold:
                objects.append({**map_class_to_label([[box]], self.mapping, [[label]])[0], "score": score})
        return objects
