"""Clients of vectors and labels, against small encoders that a real server serves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("numpy")
pytest.importorskip("mindspore")

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from tests.contract.suites import VECTORS, checks, outcomes_of
from tests.e2e.server import RunningServer, new_store, run_server
from tests.llm.classification.checkpoints import write_classifier
from tests.llm.embedding.checkpoints import write_checkpoint, write_modules

pytestmark = [pytest.mark.e2e, pytest.mark.contract, pytest.mark.mindspore, pytest.mark.long, pytest.mark.timeout(1800)]
"""Seconds: the first run installs packages."""

CONFIG = "slotBuckets: [1, 8]\ncontextBuckets: [64]\nmaxInputTokens: 64\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("vectors")
    vectors = write_checkpoint(folder / "vectors")
    write_modules(vectors, pooling_mode_mean_tokens=True)
    labels = write_classifier(folder / "labels", reranks=False)
    (folder / "config.yaml").write_text(CONFIG)
    store = new_store(folder)
    for files, handler in ((vectors, "embedding"), (labels, "sequence_classification")):
        pack(
            PackOptions(
                model_name=files.name,
                handler=handler,
                extra_files=str(files),
                config_file=str(folder / "config.yaml"),
                export_path=store,
            )
        )
    with run_server(folder, "--models", "vectors.mar", "labels.mar", tokens=True) as running:
        yield running


@pytest.fixture(scope="module")
def outcomes(server: RunningServer) -> dict[str, dict[str, str]]:
    return outcomes_of(VECTORS, server)


@pytest.mark.parametrize(("name", "check"), checks(VECTORS))
def test_client(outcomes: dict[str, dict[str, str]], server: RunningServer, name: str, check: str) -> None:
    assert not outcomes[name][check], f"{outcomes[name][check]}\n{server.tail()}"
