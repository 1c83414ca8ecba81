"""`ts.torch_handler.dali_image_classifier`: imports, and says what to use."""

from .dali_handler import DALIHandler


class DALIImageClassifier(DALIHandler):
    topk = 5
