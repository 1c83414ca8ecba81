"""A request's head that means a job, and what follows from it for each request that has the same."""

from __future__ import annotations

from msx_frontend.keys.key import Key
from msx_net.http.compression import accepted
from msx_net.http.family import JobTemplate, give_key
from msx_net.http.head import Head
from msx_net.http.router import Match
from msx_net.http.wire import RawHeaders


class KnownHead:
    __slots__ = ("asked", "checked", "cors", "encoding", "family", "head", "key", "match", "template")

    def __init__(
        self, head: Head, match: Match, template: JobTemplate, cors: RawHeaders, client: str, *, checked: bool
    ) -> None:
        """`checked`: the route needs a key. `cors`: the headers of replies; one list for all that allow one origin."""
        self.head, self.match, self.family, self.template, self.checked = head, match, match.family, template, checked
        self.cors = cors
        self.encoding = accepted(head.header(b"accept-encoding")) if match.family.compress_replies else None
        """How large replies are compressed; None if they are not."""
        self.key: Key | None = None
        """The key that was good for this head the last time."""
        self.asked = client, "", head.method, head.target, head.protocol, 200
        """The entry of the access log for an ordinary answer."""

    def use(self, key: Key | None) -> None:
        self.key = key
        give_key(self.template, key)
        client, _, method, target, protocol, status = self.asked
        self.asked = client, "" if key is None else key.name, method, target, protocol, status
