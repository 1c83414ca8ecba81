"""Snapshots as files, one each, as TorchServe writes them."""

from datetime import datetime
from pathlib import Path

from msx_frontend.config.properties import PropertiesError, read_properties, write_properties
from msx_frontend.snapshots.serializer import SavedSnapshot, SnapshotError, SnapshotSerializer
from msx_frontend.whole_file import sweep, write_whole

_STAMP = "%Y%m%d%H%M%S%f"


def snapshot_name(kind: str, now: datetime) -> str:
    """`kind`: startup, snapshot or shutdown. The stamp is local time, to the millisecond."""
    return f"{now:%Y%m%d%H%M%S}{now.microsecond // 1000:03}-{kind}.cfg"


class SnapshotFiles:
    """A folder of snapshots. Old ones stay, as with TorchServe."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        sweep(folder, "*")

    def save(self, snapshot: SavedSnapshot) -> None:
        """Readable by the owner only: URLs and keys of a configuration may be secret."""
        path = self.folder / snapshot.name
        if path.exists():
            return
        write_whole(path, write_properties(snapshot.properties, "Saving snapshot").encode(), 0o600)

    def get(self, name: str) -> SavedSnapshot:
        try:
            return SavedSnapshot(name=name, properties=read_properties(self.folder / name, {}))
        except PropertiesError as error:
            raise SnapshotError(
                f"{error}; name another one by model_snapshot, or start with --ncs to read none"
            ) from None

    def get_last(self) -> SavedSnapshot | None:
        newest = self.newest()
        return self.get(newest.name) if newest else None

    def newest(self) -> Path | None:
        """A file without a time stamp is not a snapshot."""
        try:
            names = [entry.name for entry in self.folder.iterdir() if entry.suffix == ".cfg" and entry.is_file()]
        except FileNotFoundError:
            return None
        stamped = [name for name in names if _has_stamp(name)]
        return self.folder / max(stamped, key=lambda name: name.partition("-")[0]) if stamped else None


def _has_stamp(name: str) -> bool:
    stamp = name.partition("-")[0]
    try:
        datetime.strptime(stamp, _STAMP)
    except ValueError:
        return False
    return len(stamp) == 17 and stamp.isdecimal()


def unread(serializer: SnapshotSerializer | None) -> str:
    """A hint for a server with an empty state: there are snapshots, from which TorchServe would start. Else ""."""
    newest = serializer.newest() if isinstance(serializer, SnapshotFiles) else None
    return f"{newest} is a snapshot and was not read: --ts-config {newest} starts from it." if newest else ""
