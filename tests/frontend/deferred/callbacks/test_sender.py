"""One callback to a URL that a client chose, so that no host, address or redirect is trusted."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterator

import pytest

from msx_frontend.deferred.callbacks import sender as module
from msx_frontend.deferred.callbacks.secrets import Signer
from msx_frontend.deferred.callbacks.sender import CallbackAnswer, CallbackSender
from msx_net.outgoing.addresses import Address, address_of
from msx_net.outgoing.allowed import AllowedHosts
from tests.free_ports import free_port
from tests.frontend.deferred.callbacks.receiver import SECRET, Receiver, receiver
from tests.loops import run

LOCAL = ("127.0.0.1",)
KEY = base64.b64decode(SECRET[6:])
BODY = b'{"type":"job.completed"}'


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as server:
        yield server


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Addresses by name, in place of DNS."""
    known: dict[str, list[str]] = {}

    def resolved(host: str) -> list[Address]:
        return [one for text in known.get(host, [host]) if (one := address_of(text)) is not None]

    monkeypatch.setattr(module, "resolved", resolved)
    return known


def sent(url: str, hosts: tuple[str, ...] = LOCAL, seconds: float = 10.0) -> CallbackAnswer:
    async def test() -> CallbackAnswer:
        sender = CallbackSender(AllowedHosts(hosts), Signer([b"old" * 10, KEY]), seconds)
        try:
            return await sender.send("msg_1", url, BODY)
        finally:
            sender.close()

    return run(test())


def test_it_is_signed_with_each_secret(hook: Receiver) -> None:
    assert sent(hook.url) == CallbackAnswer(200)
    ((path, headers, body),) = hook.got
    assert (path, body, headers["content-type"], headers["webhook-id"]) == ("/hook", BODY, "application/json", "msg_1")
    signed = f"msg_1.{headers['webhook-timestamp']}.".encode() + body
    by_new = base64.b64encode(hmac.digest(KEY, signed, "sha256")).decode()
    assert headers["webhook-signature"].split()[1] == f"v1,{by_new}"
    assert len(headers["webhook-signature"].split()) == 2


def test_the_connection_goes_to_the_address_that_was_checked(hook: Receiver, names: dict[str, list[str]]) -> None:
    names["hooks.example"] = ["127.0.0.1"]
    port = hook.server_address[1]
    assert sent(f"http://Hooks.example:{port}/a?b=c", ("hooks.example", "127.0.0.0/8")).status == 200
    assert (hook.got[0].path, hook.got[0].headers["host"]) == ("/a?b=c", f"hooks.example:{port}")


@pytest.mark.parametrize("hosts", [("hooks.example",), ("*",), ("*.example", "10.0.0.0/8")])
def test_a_name_leads_to_no_private_address(hook: Receiver, names: dict[str, list[str]], hosts: tuple[str]) -> None:
    names["hooks.example"] = ["1.1.1.1", "127.0.0.1"]
    answered = sent(f"http://hooks.example:{hook.server_address[1]}/", hosts)
    reason = "hooks.example is of this machine or a private network, which callback_hosts does not name"
    assert answered == CallbackAnswer(None, reason)
    assert hook.got == []


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "127.1",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "10.0.0.1",
        "169.254.169.254",
        "168.63.129.16",
        "100.100.100.200",
        "[fd00:ec2::254]",
        "224.0.0.1",
        "255.255.255.255",
    ],
)
def test_special_addresses_need_a_network_of_their_own(host: str) -> None:
    assert sent(f"http://{host}/", ("*",)).error.endswith(
        "is of this machine or a private network, which callback_hosts does not name"
    )


@pytest.mark.parametrize(
    "url", ["http://other.example/", "ftp://127.0.0.1/", "file:///etc/passwd", "http://user:pass@127.0.0.1/", "http://"]
)
def test_what_is_not_allowed(url: str) -> None:
    assert sent(url).error.endswith("is not in callback_hosts of the server's config.properties")


def test_a_redirect_is_not_followed(hook: Receiver) -> None:
    hook.statuses, hook.headers = [302], {"location": "/other"}
    assert sent(hook.url) == CallbackAnswer(302)
    assert len(hook.got) == 1


def test_a_receiver_says_when_it_is_asked_again(hook: Receiver) -> None:
    hook.statuses, hook.headers = [503], {"retry-after": "120"}
    assert sent(hook.url) == CallbackAnswer(503, again_after=120.0)
    hook.headers = {"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"}
    assert sent(hook.url) == CallbackAnswer(503)


def test_a_receiver_that_does_not_answer(hook: Receiver) -> None:
    hook.statuses = [0]
    assert sent(hook.url, seconds=0.3).error in (
        "it did not answer within callback_timeout, 0.3 s",
        "its host does not answer",
    )
    assert sent(f"http://127.0.0.1:{free_port()}/") == CallbackAnswer(None, "it cannot be sent (ConnectError)")


def test_a_name_without_an_address(names: dict[str, list[str]]) -> None:
    names["none.example"] = []
    assert sent("http://none.example/", ("*",)) == CallbackAnswer(None, "none.example has no address")
