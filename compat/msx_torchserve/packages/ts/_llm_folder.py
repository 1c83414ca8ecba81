"""The folder of a model in the store, which `ts.llm_launcher` makes as TorchServe's: without an archive."""

import asyncio
import os
import shutil
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from msx_core.names import ALIAS

WEIGHTS = "model"
"""A link to the folder with the model's files."""
HUB = "hf://"
TELL = 10.0
"""Seconds between two lines about a download."""


@contextmanager
def model_folder(args: Namespace) -> Iterator[Path]:
    """The model's folder in the store, removed behind the block; one that is there already is served as it is, and
    stays. Raises ArchiveError, ServiceError, StartError, OSError."""
    store = Path(args.model_store)
    store.mkdir(parents=True, exist_ok=True)
    folder = store / args.model_name
    if folder.exists():
        _say(f"{folder} is there already, and is served as it is.")
        yield folder
        return
    server = _server(store, args.download_dir)
    weights, devices = _weights(args.model_id, server), _devices(server)
    try:
        _pack(args, store, devices)
        (folder / WEIGHTS).symlink_to(weights, target_is_directory=True)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def model_config(args: Namespace, devices: int) -> dict[str, Any]:
    """TorchServe's model-config.yaml of such a model, over all `devices`. A hub's name of it is another name,
    which clients send."""
    engine = {"max_num_seqs": args.max_num_seqs, "max_model_len": args.max_model_len}
    if ALIAS.fullmatch(args.model_id) and not Path(args.model_id).is_dir():
        engine["served_model_name"] = [args.model_id]
    if devices > 1:
        engine["tensor_parallel_size"] = devices
    return {
        "minWorkers": 1,
        "maxWorkers": 1,
        "batchSize": 1,
        "maxBatchDelay": 100,
        "responseTimeout": 1200,
        "startupTimeout": args.startup_timeout,
        "deviceType": "gpu",
        "asyncCommunication": True,
        **({"parallelType": "custom", "parallelLevel": devices} if devices > 1 else {}),
        "handler": {"model_path": WEIGHTS, "vllm_engine_config": engine},
    }


def _pack(args: Namespace, store: Path, devices: int) -> None:
    with tempfile.TemporaryDirectory() as made:
        config = Path(made) / "model-config.yaml"
        config.write_text(yaml.safe_dump(model_config(args, devices)))
        pack(
            PackOptions(
                model_name=args.model_name,
                handler="vllm_handler",
                export_path=store,
                config_file=str(config),
                archive_format="no-archive",
            )
        )


def _server(store: Path, hub_dir: Path | None) -> Any:
    """The configuration with which the server will start. Raises StartError."""
    from msx_frontend.embedding import load_settings

    own = {"model_store": store, **({} if hub_dir is None else {"hub_dir": hub_dir.resolve()})}
    return load_settings({name: str(path) for name, path in own.items()}, None, os.environ).config


def _devices(server: Any) -> int:
    from msx_frontend.embedding import choose_devices

    chosen = choose_devices(server, os.environ)
    chosen.accelerator.close()
    return len(chosen.devices)


def _weights(model_id: str, server: Any) -> Path:
    """A folder of this machine, or of a model of a hub: fetched as the server would, unless it is there."""
    if (local := Path(model_id)).is_dir():
        return local.resolve()
    from msx_frontend.embedding import fetched

    url = model_id if "://" in model_id else f"{HUB}{model_id}"
    return asyncio.run(fetched(url, server, _say, TELL)).path


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201  # for the user of the command
