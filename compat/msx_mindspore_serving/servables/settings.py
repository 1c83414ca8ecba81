"""The section `servable:` of model-config.yaml, and the key of encrypted models."""

from pathlib import Path

from msx_core.config import ServableOptions, parse_model_config
from msx_core.mindspore.encrypted import Decryption
from msx_sdk import Context, HandlerLoadError

KEY_LENGTHS = (16, 24, 32)


def options_of(context: Context) -> ServableOptions:
    return parse_model_config(context.model_yaml_config)[0].servable


def decryption_of(context: Context) -> Decryption | None:
    """The key of the start script, or else that in the file that `servable.decKeyFile` names.

    Raises HandlerLoadError.
    """
    start, options = context.info.servable, options_of(context)
    if start is not None and start.dec_key is not None:
        return Decryption(start.dec_key, start.dec_mode)
    if options.dec_key_file is None:
        return None
    return Decryption(_read_key(Path(options.dec_key_file)), options.dec_mode)


def _read_key(path: Path) -> bytes:
    if not path.is_absolute():
        raise HandlerLoadError(
            f"servable.decKeyFile: '{path}' is not an absolute path; a key does not belong in an archive"
        )
    try:
        with path.open("rb") as file:
            key = file.read(max(KEY_LENGTHS) + 1)
    except OSError as error:
        raise HandlerLoadError(f"servable.decKeyFile: '{path}' cannot be read: {error.strerror}") from None
    if len(key) not in KEY_LENGTHS:
        raise HandlerLoadError(f"servable.decKeyFile: '{path}' does not hold a key of 16, 24 or 32 bytes")
    return key
