"""A request's head that means a job, and what follows from it for each request that has the same."""

from __future__ import annotations

from msx_core.service_errors import ServiceError
from msx_net.http.compression import accepted
from msx_net.http.family import JobTemplate, give_key
from msx_net.http.head import Head
from msx_net.http.router import Match
from msx_net.http.wire import RawHeaders
from msx_net.keys import ClientKey
from msx_net.model_names import Epoch


class KnownHead:
    __slots__ = (
        "asked",
        "checked",
        "cors",
        "encoding",
        "epoch",
        "family",
        "head",
        "key",
        "match",
        "packed",
        "refusal",
        "template",
    )

    def __init__(
        self,
        head: Head,
        match: Match,
        template: JobTemplate,
        cors: RawHeaders,
        client: str,
        epoch: Epoch,
    ) -> None:
        """`cors`: the headers of replies; one list for all that allow one origin."""
        self.head, self.match, self.family, self.template, self.cors = head, match, match.family, template, cors
        self.epoch = epoch
        """The head means the job while it is current."""
        self.checked = False
        """The route needs a key."""
        self.refusal: ServiceError | None = None
        """Told to each request with this head whose key is good."""
        self.encoding = accepted(head.header(b"accept-encoding")) if match.family.compress_replies else None
        """How large replies are compressed; None if they are not."""
        self.packed = "" if match.family.takes_as_sent else head.content_encoding
        """The encoding of bodies that are decompressed for the job; empty where they are taken as they are."""
        self.key: ClientKey | None = None
        """The key that was good for this head the last time."""
        self.asked = client, "", head.method, head.target, head.protocol, 200
        """The entry of the access log for an ordinary answer."""

    def use(self, key: ClientKey | None) -> None:
        self.key = key
        give_key(self.template, key)
        client, _, method, target, protocol, status = self.asked
        self.asked = client, "" if key is None else key.name, method, target, protocol, status
