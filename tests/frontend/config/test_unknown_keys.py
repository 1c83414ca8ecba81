"""Keys that the server does not have: warnings, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_frontend.config import ServerConfigError
from msx_frontend.config.load import GivenSettings, load_settings


def load(folder: Path, text: str, **env: str) -> GivenSettings:
    file = folder / "ts.properties"
    file.write_text(text)
    return load_settings({"model_store": folder}, file, env)


def test_they_are_warnings(tmp_path: Path) -> None:
    found = load(tmp_path, "job_queue_sise=7\nvmargs=-Xmx1g\n")
    (one,) = found.unknown
    assert (one.key, one.remedy) == ("job_queue_sise", "did you mean job_queue_size?")
    assert one.notice in found.notices
    assert len(found.notices) == 2
    assert found.file == tmp_path / "ts.properties"


def test_they_are_refused_where_that_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(ServerConfigError) as raised:
        load(tmp_path, "job_queue_sise=7\nblah=1\nvmargs=-Xmx1g\nunknown_keys=refuse\n")
    said = str(raised.value)
    assert said.startswith("unknown_keys=refuse: correct or remove these keys, or leave out unknown_keys, ")
    assert "job_queue_sise: is not a known key; did you mean job_queue_size?" in said
    assert "blah: is not a known key" in said
    assert "vmargs" not in said
    assert load(tmp_path, "vmargs=-Xmx1g\nunknown_keys=refuse\n").unknown == ()


def test_a_policy_that_is_mistyped_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServerConfigError, match=r"unknown_keys: 'deny' is not one of warn, refuse"):
        load(tmp_path, "unknown_keys=deny\n")


def test_of_many_a_few_are_shown_and_looked_up(tmp_path: Path) -> None:
    many = "".join(f"max_request_elements{n}=1\n" for n in range(200))
    found = load(tmp_path, many)
    assert len(found.unknown) == 200
    assert sum(1 for one in found.unknown if one.remedy) == 100
    with pytest.raises(ServerConfigError, match=r"max_request_elements9:.*, and 190 more$"):
        load(tmp_path, f"{many}unknown_keys=refuse\n")


def test_a_key_is_shown_in_part(tmp_path: Path) -> None:
    assert load(tmp_path, f"{'x' * 1000}=1\n").unknown[0].key == "x" * 80


def test_variables_of_java_and_of_intels_extension_have_no_effect(tmp_path: Path) -> None:
    """TorchServe reads them besides its keys."""
    gone = {"JAVA_HOME": "/opt/java", "TS_BENCHMARK": "true", "TS_IPEX_ENABLE": "true", "TS_IPEX_GPU_ENABLE": "true"}
    for text in ("", "enable_envvars_config=true\n"):
        with_them, without = load(tmp_path, text, **gone), load(tmp_path, text)
        assert (with_them.config, with_them.notices, with_them.unknown) == (without.config, without.notices, ())


def test_variables_that_are_near_to_one_of_ours(tmp_path: Path) -> None:
    variables = {"TS_JOB_QUEUE_SISE": "7", "TS_SOMETHING_ELSE": "1", "TS_JOB_QUEUE_SIZE": "8"}
    found = load(tmp_path, "enable_envvars_config=true\n", **variables)
    (one,) = found.unknown
    assert (one.origin, one.key, one.remedy) == (
        "environment",
        "TS_JOB_QUEUE_SISE",
        "did you mean TS_JOB_QUEUE_SIZE?",
    )
    assert found.config.job_queue_size == 8
    assert load(tmp_path, "", **variables).unknown == ()
