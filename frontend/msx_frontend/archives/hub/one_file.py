"""The process that reads one small file of a model in a hub: `python -m …one_file URL FILE MOST` writes its bytes, or
exits with 1 and a reason."""

import sys
from typing import cast

from msx_frontend.archives.hub.fetch_process import is_offline
from msx_frontend.archives.hub.hub_download import patiently
from msx_frontend.archives.hub.hub_url import HubUrl
from msx_frontend.archives.hub.process import TOO_LARGE, limit_memory, read_small, remote_of
from msx_frontend.archives.hub.remote import BrokenError, HubError, HubListing


def main() -> None:
    limit_memory()
    url, name, most = sys.argv[1:]
    try:
        data = _read(HubUrl.parse(url), name, int(most))
    except (HubError, BrokenError, OSError) as error:
        sys.exit(str(error))
    except MemoryError:
        sys.exit(TOO_LARGE)
    sys.stdout.buffer.write(data)


def _read(url: HubUrl, name: str, most: int) -> bytes:
    """Raises HubError, BrokenError."""
    remote = remote_of(url, [".*"], offline=bool(is_offline(url, configured=False)))
    listing = cast(HubListing, patiently(remote.list_files))
    file = next((file for file in listing.files if file.path == name and 0 <= file.size <= most), None)
    if file is None:
        raise HubError(f"it has no {name} of at most {most >> 20} MiB")
    data = read_small(remote, file)
    if len(data) != file.size:
        raise HubError(f"{name} has {file.size} bytes by the hub's listing, but {len(data)} came")
    return data


if __name__ == "__main__":
    main()
