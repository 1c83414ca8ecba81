"""Which secrets of the server's environment no worker inherits."""

from __future__ import annotations

from msx_frontend.workers.credentials import without_credentials

SECRETS = (
    "MSX_API_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_STORAGE_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "OBS_SECRET_ACCESS_KEY",
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "MODELSCOPE_API_TOKEN",
)
OTHERS = ("PATH", "AWS_DEFAULT_REGION", "HF_HOME", "HF_ENDPOINT", "TOKENIZERS_PARALLELISM", "MY_HF_TOKEN")


def test_the_keys_of_the_server_and_of_stores_stay() -> None:
    env = dict.fromkeys((*SECRETS, *OTHERS), "x")
    assert sorted(without_credentials(env, keep_stores=False)) == sorted(OTHERS)


def test_the_keys_of_stores_are_handed_on_where_that_is_wanted() -> None:
    env = dict.fromkeys((*SECRETS, *OTHERS), "x")
    assert sorted(without_credentials(env, keep_stores=True)) == sorted((*SECRETS[1:], *OTHERS))
