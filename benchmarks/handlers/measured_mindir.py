"""The built-in handlers of MindSpore models, which note the calls of their network."""

from __future__ import annotations

from typing import Any

from measured_calls import MeasuredNetwork  # type: ignore[import-not-found]  # it lies beside this file in the archive

from msx_backend.handlers.image_classifier import ImageClassifier
from msx_backend.handlers.mindir import MindIRHandler
from msx_sdk import Context


class MeasuredMindIR(MindIRHandler):
    def initialize(self, context: Context) -> None:
        super().initialize(context)
        self.network = self.measured = MeasuredNetwork(self.network)

    def describe(self) -> Any:
        return self.measured.figures()


class MeasuredImages(ImageClassifier):
    def initialize(self, context: Context) -> None:
        super().initialize(context)
        self.network = self.measured = MeasuredNetwork(self.network)

    def describe(self) -> Any:
        return self.measured.figures()
