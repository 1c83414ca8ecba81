"""The examples of sequences: in batches, and in continuous batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.torch.examples.readme import Readme, Served
from tests.torch.examples.weights import weights

pytestmark = [pytest.mark.torch, pytest.mark.e2e]

FOLDER = "examples/stateful"
CONFIG = """
minWorkers: 2
maxWorkers: 2
batchSize: 4
maxNumSequence: 4
sequenceMaxIdleMSec: 60000
maxSequenceJobQueueSize: 10
sequenceBatching: true
handler: {cache: {capacity: 4}}
"""
PROPERTIES = """
grpc_inference_port=http://127.0.0.1:7070
grpc_management_port=http://127.0.0.1:7071
number_of_netty_threads=32
job_queue_size=1000
default_response_timeout=300
install_py_dep_per_model=true
enable_envvars_config=true
"""
SAMPLES = {f"{FOLDER}/sample/sample{number}.txt": f"{number}\n" for number in (1, 2, 3)}
SEQUENCE = {"ts_request_sequence_id": "seq_0"}


@contextmanager
def served(folder: Path, place: str, handler: str, config: str) -> Iterator[tuple[Readme, Served]]:
    """Packed by the commands of a folder of the example."""
    here = f"{FOLDER}/{place}"
    files = {
        f"{here}/stateful_handler.py": handler,
        f"{here}/model-config.yaml": config,
        f"{FOLDER}/model.py": "../cnn_model.py",
        f"{FOLDER}/requirements.txt": "numpy\n",
        f"{FOLDER}/config.properties": PROPERTIES,
        **SAMPLES,
    }
    readme = Readme(folder, files)
    readme.write(f"{FOLDER}/model_cnn.pt", weights(folder / FOLDER / "model.py"))
    readme.write(
        f"{here}/model-config.yaml", readme.read(f"{here}/model-config.yaml").replace(b"MSec: 10\n", b"MSec: 60000\n")
    )
    readme.types(
        "torch-model-archiver --model-name stateful --version 1.0 --model-file ../model.py --serialized-file "
        "../model_cnn.pt --handler stateful_handler.py -r ../requirements.txt --config-file model-config.yaml",
        "mkdir ../../../models",
        "mv stateful.mar ../../../models/",
        folder=here,
    )
    properties = f"{FOLDER}/config.properties"
    start = "torchserve --ncs --start --disable-token-auth --model-store models --models stateful.mar"
    with readme.serves(f"{start} --ts-config {properties}", properties=properties) as running:
        yield readme, running


def test_sequence_batching(tmp_path: Path) -> None:
    with served(tmp_path, "sequence_batching", "stateful.py", CONFIG) as (readme, running):
        sums = [running.sends("/predictions/stateful", readme.read(sample), SEQUENCE).json() for sample in SAMPLES]
        other = running.sends("/predictions/stateful", b"5", {"ts_request_sequence_id": "seq_1"}).json()
    assert (sums, other) == ([1, 3, 6], 5)


def test_sequence_continuous_batching(tmp_path: Path) -> None:
    """An even number is answered once, an odd one by a stream."""
    config = f"{CONFIG}continuousBatching: true\n"
    start = {**SEQUENCE, "ts_request_sequence_start": "true"}
    with served(tmp_path, "sequence_continuous_batching", "sequence_continuous.py", config) as (_, running):
        assert running.sends("/predictions/stateful", b"2", start).text == "2"
        with running.inference.stream("PUT", "/predictions/stateful", content=b"3", headers=SEQUENCE) as reply:
            chunks = [*reply.iter_text()]
    assert len(chunks) > 1
    assert set("".join(chunks)) == {"5"}
