from __future__ import annotations

import json
from typing import Any

import pytest

from msx_core.manifest import FileEntry, Manifest, ManifestError, ModelEntry, parse_manifest

# As torch-model-archiver 0.12 writes it.
TORCHSERVE = {
    "createdOn": "01/02/2024 03:04:05",
    "runtime": "python",
    "model": {
        "modelName": "densenet161",
        "serializedFile": "densenet161.pth",
        "handler": "image_classifier",
        "modelFile": "model.py",
        "modelVersion": "1.0",
        "requirementsFile": "requirements.txt",
        "configFile": "model-config.yaml",
        "sourceVocab": "vocab.pt",
    },
    "archiverVersion": "0.12.0",
}


def parse(tree: Any) -> tuple[Manifest, list[str]]:
    return parse_manifest(json.dumps(tree).encode())


def edited(**changes: Any) -> dict[str, Any]:
    model = {**TORCHSERVE["model"], **changes}  # type: ignore[dict-item]
    return {**TORCHSERVE, "model": model}


def test_torchserve_manifest_is_read() -> None:
    manifest, warnings = parse(TORCHSERVE)
    assert warnings == []
    assert manifest.model.model_name == "densenet161"
    assert manifest.model.source_vocab == "vocab.pt"
    assert manifest.archiver_version == "0.12.0"
    assert manifest.files == {}


def test_written_manifest_reads_back_with_torchserves_keys() -> None:
    entry = FileEntry(size=3, sha256="0" * 64)
    manifest = Manifest(model=ModelEntry(model_name="m", handler="h.py"), files={"h.py": entry})
    data = manifest.to_json()
    assert parse_manifest(data) == (manifest, [])
    tree = json.loads(data)
    assert tree["model"] == {"modelName": "m", "handler": "h.py", "modelVersion": "1.0"}
    assert tree["files"] == {"h.py": {"size": 3, "sha256": "0" * 64}}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_read(encoding: str) -> None:
    manifest, warnings = parse_manifest(json.dumps(TORCHSERVE).encode(encoding))
    assert (manifest.model.model_name, warnings) == ("densenet161", [])


def test_a_text_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(ManifestError, match=r"MANIFEST\.json is not valid JSON: .*can't decode"):
        parse_manifest(b'{"model": {"modelName": "\xe4"}}')


def test_defaults() -> None:
    manifest = Manifest.from_json(b'{"model": {"modelName": "m", "handler": "h"}}')
    assert (manifest.model.model_version, manifest.runtime, manifest.created_on) == ("1.0", "python", None)


def test_unknown_keys_are_named_and_ignored() -> None:
    manifest, warnings = parse({**edited(batchsize=4), "engine": {}})
    assert manifest.model.model_name == "densenet161"
    assert warnings == [
        "Unknown key 'engine' in the manifest is ignored.",
        "Unknown key 'model.batchsize' in the manifest is ignored.",
    ]


def test_dict_is_torchserves_again() -> None:
    tree = parse(TORCHSERVE)[0].to_dict()
    assert tree == {**TORCHSERVE, "files": {}}
    assert list(tree) == [*TORCHSERVE, "files"]


def test_a_name_and_a_handler_may_come_from_elsewhere() -> None:
    model = parse({"model": {}})[0].model
    assert (model.model_name, model.handler, model.model_version) == (None, None, "1.0")


def test_null_is_absent() -> None:
    assert parse(edited(serializedFile=None))[0].model.serialized_file is None


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({}, ["has no 'model'"]),
        ({"model": 5}, ["'model' is 5", "expected `object`"]),
        (edited(modelVersion=1.0), ["'model.modelVersion' is 1.0", "expected `str"]),
        (edited(modelName=["a"]), ["'model.modelName' is [\"a\"]", "expected `str"]),
        (edited(modelName="../up"), ["'model.modelName' is \"../up\"", "matching regex"]),
        (edited(modelName="a\n"), ["'model.modelName'", "matching regex"]),
        ({**TORCHSERVE, "files": []}, ["'files' is []", "expected `object`"]),
        ({**TORCHSERVE, "files": {"a": {"size": -1, "sha256": "0" * 64}}}, ["'files[...].size'", ">= 0"]),
        ([], ["must be a JSON object, got []"]),
    ],
)
def test_refusals_name_key_value_and_expectation(tree: Any, words: list[str]) -> None:
    with pytest.raises(ManifestError) as caught:
        parse(tree)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_not_json(data: bytes) -> None:
    with pytest.raises(ManifestError, match="is not valid JSON"):
        Manifest.from_json(data)
