"""`model_archiver.model_packaging`."""

import logging
from dataclasses import asdict
from pathlib import Path

from msx_archiver.errors import ArchiveError
from msx_archiver.options import PackOptions
from msx_archiver.pack import pack

from .model_archiver_config import ModelArchiverConfig


def generate_model_archive(config: ModelArchiverConfig | None = None) -> None:
    """Pack a model. Without a config, by the program's arguments: `msx-archiver` itself, which ends the program.

    What is odd, what is wrong and where the archive is are logged. Raises ModelArchiverError.
    """
    if config is None:
        from msx_archiver.cli import main

        main()
        return
    logging.basicConfig(format="%(levelname)s - %(message)s")
    options = PackOptions(**{**asdict(config), "export_path": Path(config.export_path)})
    try:
        path = pack(options, warn=logging.warning)
    except ArchiveError as error:
        logging.error("%s", error)
        raise
    logging.info("Successfully exported model %s to file %s", config.model_name, path)


def package_model(config: ModelArchiverConfig, manifest: object = None) -> None:
    """The same, with a manifest that is made of the config."""
    generate_model_archive(config)


if __name__ == "__main__":
    generate_model_archive()
