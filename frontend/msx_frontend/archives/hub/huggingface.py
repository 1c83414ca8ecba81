"""Models of Hugging Face's hub, or of a mirror (`HF_ENDPOINT`), by huggingface_hub."""

from collections.abc import Generator, Sequence
from typing import Any

from msx_frontend.archives.hub.digests import GIT, SHA256
from msx_frontend.archives.hub.hub_url import HubUrl
from msx_frontend.archives.hub.redirects import Redirects
from msx_frontend.archives.hub.remote import (
    SILENCE,
    BrokenError,
    HubError,
    HubFile,
    HubListing,
    library,
    said,
    skipped,
)
from msx_frontend.archives.schemes import HF

_BUSY = (408, 429, 500, 502, 503, 504)


class HuggingFace:
    """The token is where the library finds it: `HF_TOKEN`, or the file that `hf auth login` writes."""

    def __init__(self, url: HubUrl, allowed: Sequence[str]) -> None:
        """`allowed`: see `Redirects`."""
        self._url, self._hub = url, library("huggingface_hub", "hf://")
        self._utils = library("huggingface_hub.utils", "hf://")
        self._errors = library("huggingface_hub.errors", "hf://")
        self._revision = url.revision or "main"
        self.redirects = Redirects(HF, library("huggingface_hub.constants", "hf://").ENDPOINT, allowed)

    def list_files(self) -> HubListing:
        """Files of the commit that the revision names now."""
        self._session()
        try:
            info = self._hub.HfApi().model_info(
                self._url.place, revision=self._revision, files_metadata=True, timeout=SILENCE
            )
        except Exception as error:
            raise self._reason(error) from None
        self._revision = str(info.sha)
        return HubListing([_file(one) for one in info.siblings or ()], self._revision)

    def detail(self, file: HubFile) -> HubFile:
        return file

    def read(self, file: HubFile, start: int) -> Generator[bytes, None, None]:
        url = self._hub.hf_hub_url(self._url.place, file.key, revision=self._revision)
        headers = {**self._utils.build_hf_headers(), "accept-encoding": "identity", "range": f"bytes={start}-"}
        try:
            with self._session().stream("GET", url, headers=headers, follow_redirects=True, timeout=SILENCE) as reply:
                self._check(reply, file)
                chunks = reply.iter_raw()
                yield from chunks if reply.status_code == 206 else skipped(chunks, start)
        except (HubError, BrokenError):
            raise
        except Exception as error:
            raise BrokenError(said(error)) from None

    def _session(self) -> Any:
        """The client of the library, which may have made a new one, for a request to the hub."""
        session, check = self._hub.get_session(), self.redirects.check
        if check not in (hooks := session.event_hooks)["response"]:
            session.event_hooks = {**hooks, "response": [*hooks["response"], check]}
        self.redirects.begin()
        return session

    def _check(self, reply: Any, file: HubFile) -> None:
        if reply.status_code in _BUSY:
            raise BrokenError(f"HTTP {reply.status_code}")
        if reply.status_code not in (200, 206):
            raise HubError(f"{file.path}: HTTP {reply.status_code} {reply.reason_phrase}".rstrip())

    def _reason(self, error: Exception) -> Exception:
        errors = self._errors
        if isinstance(error, HubError):
            return error
        if isinstance(error, errors.GatedRepoError):
            return HubError(
                "its owner gives access on request: ask for it on the hub's page, and give a token (HF_TOKEN)"
            )
        if isinstance(error, errors.RevisionNotFoundError):
            return HubError(f"it does not have the revision {self._revision}")
        if isinstance(error, errors.RepositoryNotFoundError):
            return HubError("the hub does not have it, or shows it only with another token (HF_TOKEN)")
        status = getattr(getattr(error, "response", None), "status_code", None)
        if isinstance(error, errors.OfflineModeIsEnabled):
            return HubError("HF_HUB_OFFLINE is set")
        if status is not None and status not in _BUSY:
            return HubError(f"HTTP {status}")
        return BrokenError(f"HTTP {status}" if status else said(error))


def _file(one: Any) -> HubFile:
    digest = f"{SHA256}:{one.lfs.sha256}" if one.lfs else f"{GIT}:{one.blob_id}" if one.blob_id else ""
    return HubFile(one.rfilename, -1 if one.size is None else int(one.size), digest, one.rfilename)
