"""As the model file of TorchServe's example of Fast R-CNN, with a smaller backbone and smaller images."""

from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone


class SmallDetector(FasterRCNN):
    def __init__(self, num_classes=91, **kwargs):
        backbone = resnet_fpn_backbone(backbone_name="resnet18", weights=None)
        super().__init__(backbone, num_classes, min_size=96, max_size=128, **kwargs)
