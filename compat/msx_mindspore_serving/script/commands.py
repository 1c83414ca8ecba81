"""Commands of a start script to its server."""

import msgspec

from msx_frontend.embedding import Server
from msx_mindspore_serving.script.channel import CommandError, Message
from msx_mindspore_serving.script.endpoints import OpenEndpoint, ScriptEndpoints
from msx_mindspore_serving.script.servables import LoadServables, ScriptServables
from msx_mindspore_serving.script.texts import LoadText, ScriptTexts


class LimitRequests(msgspec.Struct, frozen=True):
    """`enqueued`: requests of all servables that are accepted and not yet answered."""

    enqueued: int


class ScriptCommands:
    def __init__(
        self, server: Server, endpoints: ScriptEndpoints, servables: ScriptServables, texts: ScriptTexts
    ) -> None:
        self._server, self._endpoints, self._servables, self._texts = server, endpoints, servables, texts

    async def obey(self, message: Message) -> None:
        """Raises CommandError."""
        match message.pop("do", None):
            case "load":
                await self._servables.load(msgspec.convert(message, LoadServables))
            case "load_text":
                await self._texts.load(msgspec.convert(message, LoadText))
            case "open":
                await self._endpoints.open(msgspec.convert(message, OpenEndpoint))
                self._publish()
            case "limit":
                limits = msgspec.convert(message, LimitRequests)
                self._server.models.context.registry.enqueued.limit = limits.enqueued
            case "need_cluster":
                if self._server.models.cluster_report is None:
                    raise CommandError("cluster", "the server has no cluster (cluster_address)")
            case other:
                raise CommandError("bug", f"the server does not know the command {other!r}")

    def _publish(self) -> None:
        info = msgspec.structs.replace(self._server.info, endpoints=self._endpoints.addresses)
        self._server.models.context.instance.publish(info)
