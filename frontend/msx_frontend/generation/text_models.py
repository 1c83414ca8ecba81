"""The models of a server, as the APIs of language models need them."""

from collections.abc import Callable

from msx_core.service_errors import ServiceError
from msx_core.text_limits import DEFAULT_LIMITS, TextLimits
from msx_frontend.config import ServerConfig
from msx_frontend.generation.directory import Directory
from msx_frontend.generation.errors import TextFailure
from msx_frontend.generation.images.limits import ImageLimits
from msx_frontend.generation.images.preparing import ImagePreparer
from msx_frontend.generation.one_model import OneModel
from msx_frontend.generation.text_request import TextApi
from msx_frontend.models.registry import Registry
from msx_net.heartbeats import OFF, StreamHeartbeats

DEFAULT_IMAGE_LIMITS = ImageLimits.of(ServerConfig())


class TextModels:
    """`default_llm` is the model that TGI's clients mean; empty for the first one."""

    def __init__(
        self,
        registry: Registry,
        default_llm: str = "",
        limits: TextLimits = DEFAULT_LIMITS,
        heartbeats: StreamHeartbeats = OFF,
        images: ImageLimits = DEFAULT_IMAGE_LIMITS,
    ) -> None:
        self._registry, self.directory = registry, Directory(registry, default_llm)
        self.limits, self._heartbeats = limits, heartbeats
        self._images = ImagePreparer(images)

    def one(self, model: str, version: str | None) -> OneModel:
        """The model that a path names."""
        return OneModel(self._registry, model, version)

    def api(self, failure: Callable[[ServiceError], TextFailure]) -> TextApi:
        """`failure` makes the API's reply to an error."""
        return TextApi(self._registry.submit, self.directory, failure, self._images, self.limits, self._heartbeats)
