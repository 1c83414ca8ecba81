from __future__ import annotations

import base64
from pathlib import Path

import pytest

from msx_frontend.deferred.callbacks.secrets import CallbackSecretsError, Signer, read_secrets

KNOWN = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "secrets"
    path.write_text(text)
    path.chmod(mode)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(CallbackSecretsError) as refused:
        read_secrets(path)
    return str(refused.value)


def secret(size: int) -> str:
    return "whsec_" + base64.b64encode(bytes(range(size))).decode()


def test_a_signature_as_the_standard_has_it() -> None:
    """The example of Standard Webhooks' own libraries."""
    signer = Signer([base64.b64decode(KNOWN[6:])])
    headers = signer.headers("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_an_old_secret_signs_beside_a_new_one(tmp_path: Path) -> None:
    lines = ["# new", KNOWN, "", secret(64)]
    secrets = read_secrets(written(tmp_path, "\n".join(lines)))
    assert len(secrets) == 2
    assert Signer(secrets).headers("a", 1, b"")["webhook-signature"].count("v1,") == 2


@pytest.mark.parametrize("text", [secret(23), secret(65), KNOWN[6:], "whsec_!", "whsec_", "whsec_é" * 9])
def test_what_is_not_a_secret(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, f"# a comment\n{text}\n")
    told = refusal(path)
    assert told.startswith(f"callback_secrets: {path}, line 2: expected whsec_ and 24 to 64 random bytes in base64: ")
    assert text not in told or text == "whsec_"


@pytest.mark.parametrize("count", [0, 11])
def test_too_few_and_too_many(tmp_path: Path, count: int) -> None:
    path = written(tmp_path, "\n".join(secret(32) for _ in range(count)))
    assert refusal(path) == f"callback_secrets: {path} has {count} secrets: 1 to 10 are expected, one a line"


def test_a_file_that_others_may_write(tmp_path: Path) -> None:
    path = written(tmp_path, KNOWN, 0o666)
    assert "and so sign callbacks in the server's name: chmod go-w" in refusal(path)
    assert refusal(tmp_path / "none").endswith("cannot be read: No such file or directory")
