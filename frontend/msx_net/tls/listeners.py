"""The TLS of all listeners, read again when its files change: connections go on, new ones get what is new."""

import asyncio
import logging
import ssl
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from msx_net.tls.identity import CertificateFiles, TlsError, TlsIdentity, authorities_of, load_identity, source
from msx_net.tls.validity import NOT_LET_IN, ExpiryLog, Validity, validity_of_any

LOOK_EVERY = 2.0
"""Seconds between two looks at the files."""

log = logging.getLogger("msx.tls")

Stamp = tuple[int, ...] | None
"""Stamp of a file's version; None where there is no file."""

Authorities = Mapping[str, tuple[str, Path]]
"""The key of the configuration that demands certificates of clients, and its file, by the name of the listener."""


class ListenerTls:
    """TLS of one listener, for its whole life. `authorities` (PEM): who must have signed the certificates of its
    clients."""

    def __init__(self, identity: TlsIdentity, authorities: bytes | None = None) -> None:
        self.now = identity, authorities
        self._served: dict[tuple[str, ...], ssl.SSLContext] = {}

    def context(self, *protocols: str) -> ssl.SSLContext:
        """Make a context for `protocols` (their names in ALPN, the preferred one first). Each handshake is served by
        the files of its moment."""
        context = self._made(protocols)
        self._served[protocols] = context
        # A certificate that is loaded into a context stands beside an older one with another kind of key.
        context.sni_callback = lambda handshake, name, own: setattr(handshake, "context", self._served[protocols])
        return context

    def renew(self, identity: TlsIdentity, authorities: bytes | None) -> None:
        """May be called in a thread."""
        self.now = identity, authorities
        self._served = {protocols: self._made(protocols) for protocols in self._served}

    def _made(self, protocols: Sequence[str]) -> ssl.SSLContext:
        identity, authorities = self.now
        return identity.context(protocols, authorities)


class ExpiryLogs:
    """Tell of the server's certificate, and of the authorities of its clients."""

    def __init__(self, files: CertificateFiles, authorities: Authorities) -> None:
        self._own = ExpiryLog(source(files))
        clients = {f"{key}: {path}": name for name, (key, path) in authorities.items()}  # each once
        self._of_clients = {name: ExpiryLog(file, NOT_LET_IN) for file, name in clients.items()}
        self._watched: list[tuple[ExpiryLog, Validity]] = []

    def watch(self, identity: TlsIdentity, authorities: Mapping[str, bytes]) -> None:
        of_clients = [(log, validity_of_any(authorities[name])) for name, log in self._of_clients.items()]
        self._watched = [(self._own, identity.validity), *of_clients]
        self.look()

    def look(self) -> None:
        for one, validity in self._watched:
            one.look(validity, time.time())


class ServerTls:
    """`listeners` speak TLS. Raises TlsError when it is made. Reads files."""

    def __init__(self, files: CertificateFiles, listeners: Collection[str], authorities: Authorities) -> None:
        self._files, self._authorities = files, authorities
        self._seen = self._stamps()
        self.identity, read = self._read()
        self._expiry = ExpiryLogs(files, authorities)
        self._expiry.watch(self.identity, read)
        self._listeners = {name: ListenerTls(self.identity, read.get(name)) for name in listeners}

    def of(self, listener: str) -> ListenerTls | None:
        """Find a listener by how its keys begin, such as `grpc_inference`; None where it does not speak TLS."""
        return self._listeners.get(listener)

    async def watch(self, changed: Callable[[], None]) -> None:
        """Until cancelled. `changed` is called on the loop when there is another certificate."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            if await asyncio.to_thread(self.look):
                changed()

    def look(self) -> bool:
        """Whether the files have changed and can be used. Those that cannot are told, and the old ones stay; so is the
        end of the certificate, before it comes."""
        self._expiry.look()
        stamps = self._stamps()
        if stamps == self._seen:
            return False
        self._seen = stamps  # from before they are read: what changes meanwhile is seen the next time
        try:
            identity, authorities = self._read()
        except TlsError as error:
            log.warning("%s. The listeners go on with the certificates that they have, until the files change", error)
            return False
        except Exception:
            log.exception("The certificates have changed and cannot be read; listeners go on with those that they have")
            return False
        for name, listener in self._listeners.items():
            listener.renew(identity, authorities.get(name))
        self.identity = identity
        log.info("The certificates have changed: new connections get %s", identity.told)
        self._expiry.watch(identity, authorities)
        return True

    def _read(self) -> tuple[TlsIdentity, dict[str, bytes]]:
        identity = load_identity(self._files)
        return identity, {name: authorities_of(key, path) for name, (key, path) in self._authorities.items()}

    def _stamps(self) -> dict[Path, Stamp]:
        files = self._files
        own = [files.keystore] if files.keystore else [files.private_key_file, files.certificate_file]
        paths = [*own, *(path for _, path in self._authorities.values())]
        return {path: _stamp(path) for path in paths if path is not None}


def _stamp(path: Path) -> Stamp:
    """Stamp of what the name leads to: a link, as Kubernetes mounts secrets, may lead elsewhere now."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
