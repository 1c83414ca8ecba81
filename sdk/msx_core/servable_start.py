"""Arguments of a servable's start, which its workers get."""

import msgspec


class ServableStart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The arguments of MindSpore Serving's `ServableStartConfig` that its handler needs.

    It goes from the start script to the workers over sockets that no other process has. Neither the state nor a log
    has it: texts that are made of it do not have the key.
    """

    directory: str = ""
    """The folder that the servable's folder is in, absolute; for messages. "" for an archive."""
    version: int = 0
    """The version that was asked for, for messages; 0: the newest."""
    device_type: str = "none"
    """Kind of device in lower case: ascend, gpu, cpu or none."""
    has_devices: bool = False
    """The script names device ids."""
    enable_lite: bool = False
    dec_key: bytes | None = None
    """Decrypts the MindIR: 16, 24 or 32 bytes."""
    dec_mode: str = "AES-GCM"
    rank_models: tuple[tuple[str, ...], ...] = ()
    """Absolute paths of the MindIR files of each rank of a distributed servable, one a subgraph."""
    rank_groups: tuple[tuple[str, ...], ...] = ()
    """The absolute paths of each rank's groups (GROUP_INFO_FILE), if there are any."""

    def __repr__(self) -> str:
        key = "without a key" if self.dec_key is None else "with a key"
        return f"ServableStart(directory={self.directory!r}, version={self.version}, {key})"
