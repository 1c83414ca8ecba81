"""Models of ModelScope, or of another address of it (`MODELSCOPE_ENDPOINT`, `MODELSCOPE_DOMAIN`), by modelscope-hub."""

import uuid
import warnings
from collections.abc import Generator, Sequence
from typing import Any

from msx_frontend.archives.hub.digests import SHA256
from msx_frontend.archives.hub.hub_url import HubUrl
from msx_frontend.archives.hub.redirects import Redirects
from msx_frontend.archives.hub.remote import CHUNK, BrokenError, HubError, HubFile, HubListing, library, said, skipped
from msx_frontend.archives.schemes import MODELSCOPE


class ModelScope:
    """The token is where the library finds it: `MODELSCOPE_API_TOKEN`, or the file that its login writes. The library
    is the part of the package modelscope that asks the hub."""

    def __init__(self, url: HubUrl, allowed: Sequence[str]) -> None:
        """`allowed`: see `Redirects`."""
        self._url, self._hub = url, library("modelscope_hub", "modelscope://")
        self._errors = library("modelscope_hub.errors", "modelscope://")
        self._revision = url.revision or "master"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # MODELSCOPE_DOMAIN, as the older library names it
            self._api = self._hub.HubApi(_config(self._hub.HubConfig))
        self.redirects = Redirects(MODELSCOPE, self._api.legacy.endpoint, allowed)
        for session in vars(self._api.legacy).values():
            if isinstance(session, library("requests", "modelscope://").Session):
                session.hooks["response"].append(self.redirects.check)

    def list_files(self) -> HubListing:
        self.redirects.begin()
        try:
            found = self._api.list_repo_files(self._url.place, "model", revision=self._revision)
        except Exception as error:
            raise self._reason(error) from None
        files = [_file(one) for one in found if one.type != "tree"]
        return HubListing(files, self._url.revision if self._url.is_pinned else "")

    def detail(self, file: HubFile) -> HubFile:
        return file

    def read(self, file: HubFile, start: int) -> Generator[bytes, None, None]:
        headers = {"Accept-Encoding": "identity", "Range": f"bytes={start}-"}
        self.redirects.begin()
        try:
            with self._api.legacy.download_stream(
                self._url.place, "model", file.key, self._revision, headers=headers
            ) as reply:
                chunks = reply.iter_content(CHUNK)
                yield from chunks if reply.status_code == 206 else skipped(chunks, start)
        except Exception as error:
            raise self._reason(error) from None

    def _reason(self, error: Exception) -> Exception:
        errors = self._errors
        if isinstance(error, HubError):
            return error
        if isinstance(error, errors.NotExistError):
            return HubError(f"the hub does not have it, or not the revision {self._revision}")
        if isinstance(error, (errors.AuthenticationError, errors.PermissionDeniedError)):
            return HubError("the hub shows it only with another token (MODELSCOPE_API_TOKEN)")
        if isinstance(error, errors.InvalidParameter):
            return HubError(said(error))
        return BrokenError(said(error))


def _config(known: Any) -> Any:
    """The library would write a number of this installation into the user's folder, which may be read-only."""
    return type("ReadOnlyConfig", (known,), {"get_session_id": lambda self: uuid.uuid4().hex})()


def _file(one: Any) -> HubFile:
    return HubFile(one.path, int(one.size), f"{SHA256}:{one.sha256}" if one.sha256 else "", one.path)
