"""`model_archiver.model_archiver`."""

from .model_archiver_config import ModelArchiverConfig
from .model_packaging import generate_model_archive


class ModelArchiver:
    @staticmethod
    def generate_model_archive(config: ModelArchiverConfig) -> None:
        """Raises ModelArchiverError."""
        generate_model_archive(config)
