"""Files that change while the model runs."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from msx_llm.adapters.adapter import Adapter
from msx_llm.adapters.files import copy_of, stamp_of
from msx_llm.adapters.loading import check_adapter
from msx_llm.adapters.weights import most_bytes, read_pairs
from msx_llm.models.registry import read_config
from msx_sdk.errors import HandlerLoadError, InvalidInput, PredictionError
from msx_sdk.generation import LoadAdapterRequest
from tests.llm.peft_folders import make_adapter
from tests.llm.wide_models import make_wide

pytestmark = pytest.mark.mindspore
pytest.importorskip("mindspore")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_wide("llama", tmp_path_factory.mktemp("model") / "m", num_hidden_layers=1, layer_types=None)


def request(folder: Path) -> LoadAdapterRequest:
    return LoadAdapterRequest(name="sql", folder=str(folder))


def test_what_was_checked_is_read(model: Path, tmp_path: Path) -> None:
    folder, config = make_adapter(model, tmp_path / "a", 1), read_config(model)
    reply = check_adapter(request(folder), config, 8)
    assert reply.rank == 4
    adapter = Adapter("sql", str(folder), reply.stamp, "load")
    assert len(read_pairs(adapter, config)) == 7
    weights = folder / "adapter_model.safetensors"
    content = weights.read_bytes()
    weights.unlink()
    weights.write_bytes(content)  # the same size, and perhaps the same instant
    os.utime(weights, ns=(1, 1))
    with pytest.raises(
        HandlerLoadError, match="adapter sql: its files have changed since it was loaded; load it again"
    ):
        read_pairs(adapter, config)
    weights.unlink()
    with pytest.raises(HandlerLoadError, match=r"adapter sql: adapter_model\.safetensors cannot be read"):
        read_pairs(adapter, config)


def test_a_file_that_becomes_shorter_does_not_end_the_process(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(1 << 20))
    with copy_of("a", tmp_path / "f", 1 << 20) as copy:
        os.truncate(tmp_path / "f", 0)
        assert len(np.memmap(copy, np.uint8)) == 1 << 20


def _change(folder: Path, how: str, model: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = folder / "adapter_model.safetensors"
    tensors: Any = load_file(weights)
    if how == "large":
        os.truncate(weights, most_bytes(read_config(model), 4) + 1)
    elif how == "pipe":
        weights.unlink()
        os.mkfifo(weights)
    elif how == "long":
        (folder / "adapter_config.json").write_bytes(b" " * (1 << 20) + b"{}")
    elif how == "nan":
        name = min(tensors)
        save_file({**tensors, name: tensors[name] * np.nan}, weights)
    else:
        save_file({"x": np.zeros(1, np.float32)} if how == "other" else {}, weights)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("large", r"has \d+ bytes; one of its r has at most \d+ for this model"),
        ("pipe", "is not a regular file"),
        ("long", "adapter_config.json has more than 1048576 bytes"),
        ("nan", "have values that are not finite"),
        ("other", "'x' is of no layer"),
        ("empty", "it has no matrices"),
    ],
)
def test_what_is_refused(how: str, reason: str, model: Path, tmp_path: Path) -> None:
    folder = make_adapter(model, tmp_path / "a", 1)
    _change(folder, how, model)
    with pytest.raises(InvalidInput, match=f"adapter sql: .*{reason}"):
        check_adapter(request(folder), read_config(model), 8)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"r": 10**400},
            r"adapter sql: r: 1000\S*\.\.\.\S*0 of adapter_config.json is not an integer from 1 to 65536$",
        ),
        ({"r": True}, "adapter sql: r: True of adapter_config.json is not an integer"),
        ({"lora_alpha": 10**400}, "adapter sql: lora_alpha: 1000.* is not a number from -1000000000 to 1000000000$"),
        ({"lora_alpha": 1e300}, "adapter sql: lora_alpha: 1e.300 of"),
        ({"lora_alpha": "2"}, "adapter sql: lora_alpha: '2' of"),
        ({"bias": "x" * 100_000}, "adapter sql: bias: 'xxx.{0,90}' is not served"),
        ({"peft_type": "x" * 100_000}, "adapter sql: peft_type 'xxx.{0,90}' is not served"),
    ],
)
def test_impossible_members(changes: dict[str, Any], said: str, model: Path, tmp_path: Path) -> None:
    folder = make_adapter(model, tmp_path / "a", 1, **changes)
    with pytest.raises(InvalidInput, match=said):
        check_adapter(request(folder), read_config(model), 8)


def test_a_configuration_that_is_not_text(model: Path, tmp_path: Path) -> None:
    folder = make_adapter(model, tmp_path / "a", 1)
    (folder / "adapter_config.json").write_bytes(b'{"peft_type": "\xff"}')
    with pytest.raises(InvalidInput, match=r"adapter sql: adapter_config\.json cannot be read"):
        check_adapter(request(folder), read_config(model), 8)


def test_files_have_their_names_in_messages(model: Path, tmp_path: Path) -> None:
    """They are read from a copy in memory, which has a number."""
    from safetensors.numpy import load_file, save_file

    folder = make_adapter(model, tmp_path / "a", 1)
    weights = folder / "adapter_model.safetensors"
    tensors: Any = load_file(weights)
    save_file({name: value for name, value in tensors.items() if "lora_B" not in name}, weights)
    with pytest.raises(InvalidInput, match=r"^adapter sql: adapter_model\.safetensors has no tensor '.*lora_B"):
        check_adapter(request(folder), read_config(model), 8)
    weights.write_bytes(b"x" * 100)
    with pytest.raises(InvalidInput, match=r"^adapter sql: adapter_model\.safetensors is not a safetensors file"):
        check_adapter(request(folder), read_config(model), 8)


class OneLayer:
    """Decoder of one layer with room for ranks of 2."""

    own = (0,)

    def __init__(self) -> None:
        from msx_llm.models.adapted import AdaptedLayer, AdaptedLinears

        linears = AdaptedLinears(2, [AdaptedLayer("self_attn.q_proj", slice(None), slice(None))], None)
        self.layers = [SimpleNamespace(cells_and_names=lambda: [("", linears)])]


def test_the_room_has_become_smaller_since_it_was_loaded(model: Path, tmp_path: Path) -> None:
    from msx_llm.adapters.device import DeviceAdapters

    folder = make_adapter(model, tmp_path / "a", 1)
    held = DeviceAdapters(cast(Any, OneLayer()), read_config(model), 4)
    with pytest.raises(PredictionError, match=r"adapter a: r is 4, above adapters\.maxRank \(2\)"):
        held.adapt(0, 1, Adapter("a", str(folder)))


class NoLayers:
    """A decoder of a rank without layers: what is put nowhere is read all the same."""

    own: tuple[int, ...] = ()
    layers: tuple[Any, ...] = ()


def test_the_host_holds_those_that_were_placed_last(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from msx_llm.adapters import device

    monkeypatch.setattr(device, "HELD", 2)
    held = device.DeviceAdapters(cast(Any, NoLayers()), read_config(model), 4)
    folders = [make_adapter(model, tmp_path / name, 1) for name in "abc"]
    one, two, three = (Adapter(it.name, str(it), stamp_of(it.name, it), "load") for it in folders)
    for adapter in (one, two):
        held.adapt(0, 1, adapter)
    (folders[0] / "adapter_model.safetensors").write_bytes(b"x")
    held.adapt(0, 1, one)  # from the host's memory
    held.adapt(0, 1, three)
    held.adapt(0, 1, two)  # from its files
    with pytest.raises(PredictionError, match="adapter a: its files have changed"):
        held.adapt(0, 1, one)
    held.adapt(1, 1, two)
    assert held.picks([0, None, 1], 1).tolist() == [1, 0, 1]


def test_ranks_above_the_room(model: Path, tmp_path: Path) -> None:
    folder = make_adapter(model, tmp_path / "a", 1, rank=9)
    with pytest.raises(InvalidInput, match=r"r is 9, above adapters\.maxRank \(8\)"):
        check_adapter(request(folder), read_config(model), 8)
    assert stamp_of("sql", folder) == stamp_of("sql", folder)
