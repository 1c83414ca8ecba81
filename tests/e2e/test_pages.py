"""The commands of README, docs and the examples' READMEs, as they stand there, and the output that the pages show."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.checkpoint import write_qwen
from tests.e2e.page_shell import LIMIT, PageShell
from tests.pages import ROOT, blocks, files, pages, shows
from tests.plugins import install
from tests.project.test_mosec_page import BLOCKS as MOSEC

pytestmark = pytest.mark.e2e

FEW_GRAPHS = "maxTotalTokens: 128\nslotBuckets: [1]\ncontextBuckets: [128]\nprefillBuckets: [64]\n"
Prepare = Callable[[PageShell], None]


@dataclass(frozen=True)
class Needs:
    """Needs of a page before its first command is typed; its own files always are."""

    prepare: Prepare = lambda shell: None
    mindspore: bool = False
    long: bool = False
    collectives: bool = False
    minutes: int = 0
    """Time that the page may take; 0: that of other tests."""


def copy_example(shell: PageShell, name: str, to: str = ".") -> Path:
    """With its ports in the clients."""
    folder = shell.folder / to
    ignored = shutil.ignore_patterns("build", "__pycache__", ".msx", "README.md", "*.mar", "*.war", "logs")
    shutil.copytree(ROOT / "examples" / name, folder, ignore=ignored, dirs_exist_ok=True)
    for client in folder.glob("*.py"):
        client.write_text(shell.translate(client.read_text()))
    return folder


def example(name: str) -> Prepare:
    return lambda shell: void(copy_example(shell, name))


def void(_: object) -> None:
    return None


def pack_echo(shell: PageShell, *names: str, folder: str = ".") -> None:
    """The archive of docs/server.md under these names."""
    (shell.folder / folder).mkdir(exist_ok=True)
    (shell.folder / "echo.py").write_text(files((ROOT / "docs/server.md").read_text())["echo.py"])
    for name in names:
        shell.run(f"msx-archiver --model-name {name} --version 1.0 --handler echo.py --export-path {folder}")


def echo_server(shell: PageShell) -> None:
    pack_echo(shell, "echo")
    shell.run("msx-serve --start --models echo.mar")


def rows_server(shell: PageShell) -> None:
    """Beside the echo a model whose instances are jobs of their own."""
    pack_echo(shell, "echo")
    twice = "[{'predictions': [2 * row['body']['instances'][0]]} for row in data]"
    (shell.folder / "rows.py").write_text(f"def handle(data, context):\n    return {twice}\n")
    (shell.folder / "rows.yaml").write_text("splitInstances: true\n")
    shell.run("msx-archiver --model-name rows --version 1.0 --handler rows.py --config-file rows.yaml")
    shell.run("msx-serve --start --models echo.mar rows.mar")


def open_server(shell: PageShell) -> None:
    pack_echo(shell, "echo")
    shell.run("msx-serve --start --enable-model-api")


def torchserve_store(shell: PageShell) -> None:
    pack_echo(shell, "echo", folder="model_store")
    (shell.folder / "config.properties").write_text(shell.settings)


def capitals(shell: PageShell) -> None:
    """The page's service; its model is the user's own."""
    loads = "\n\ndef load():\n    return lambda texts: [text.upper() for text in texts]\n"
    (shell.folder / "service.py").write_text(MOSEC["service.py"] + loads)
    (shell.folder / "model-config.yaml").write_text(MOSEC["model-config.yaml"])


def pets(shell: PageShell) -> None:
    pack_echo(shell, "classify", "detect")
    (shell.folder / "cat.jpg").write_bytes(b"a cat")


def archives(shell: PageShell) -> None:
    folder = copy_example(shell, "digits")
    shell.run("python -c 'import pathlib, train; train.export(train.Net(), pathlib.Path())'")
    (folder / "llama.py").write_text("def handle(data, context):\n    return data\n")
    for rank in range(2):
        (folder / f"out/rank_{rank}").mkdir(parents=True)
        (folder / f"out/model_{rank}.safetensors").touch()
        (folder / f"out/rank_{rank}/net.ckpt").touch()
    copy_example(shell, "workflow", "reviews")
    shutil.copy(folder / "reviews/reviews.yaml", folder / "workflow.yaml")
    shutil.copy(folder / "reviews/functions.py", folder / "workflow_handler.py")


def digits_server(shell: PageShell) -> None:
    copy_example(shell, "digits")
    shell.run("python train.py && cp build/three.png .")
    packed = (
        "--serialized-file build/digits.mindir --extra-files build/index_to_name.json --config-file model-config.yaml"
    )
    shell.run(f"msx-archiver --model-name digits --version 1.0 --handler image_classifier {packed}")
    shell.run("msx-serve --start --models digits.mar")


def qwen(shell: PageShell) -> None:
    copy_example(shell, "llama", "../llama")
    copy_example(shell, "qwen")
    write_qwen(shell.folder / "checkpoint")


def embeddings(shell: PageShell) -> None:
    from tests.llm.classification.checkpoints import write_classifier  # needs NumPy
    from tests.llm.embedding.checkpoints import write_checkpoint

    write_checkpoint(shell.folder / "minilm")
    write_classifier(shell.folder / "reranker", reranks=True)
    shutil.copytree(ROOT / "model-configs", shell.folder / "model-configs")


def language_models(shell: PageShell) -> None:
    qwen(shell)
    (shell.folder / "few.yaml").write_text(FEW_GRAPHS)
    packed = "--handler text_generation --extra-files checkpoint --config-file few.yaml"
    shell.run(f"msx-archiver --model-name qwen --version 1.0 {packed}")
    shell.run("msx-serve --start --models qwen.mar")


def plugin(shell: PageShell, name: str = "plugin") -> None:
    folder = copy_example(shell, name)
    install(folder / "plugins", folder)
    shell.configure((folder / "config.properties").read_text())


def example_app(shell: PageShell) -> None:
    plugin(shell, "app")


def exported(shell: PageShell) -> None:
    copy_example(shell, "matmul")
    shell.run("python export.py 2 && cp model-config-tp2.yaml model-config.yaml")


def net_and_checkpoint(shell: PageShell) -> None:
    """`net.mindir`, and the network and the checkpoint that it was exported from."""
    source = "from mindspore import nn\n\n\ndef create():\n    return nn.Dense(4, 3)\n"
    (shell.folder / "net.py").write_text(source)
    made = "import mindspore as ms, net; from msx_sdk.mindspore import export; one = net.create()"
    kept = "export(one, ms.Tensor(shape=[None, 4], dtype=ms.float32), 'net'); ms.save_checkpoint(one, 'net.ckpt')"
    shell.run(f'python -c "{made}; {kept}"')


PAGES = {
    "docs/archives.md": Needs(archives, mindspore=True),
    "docs/benchmarks.md": Needs(lambda shell: void(shell.run(f"ln -s '{ROOT / 'benchmarks'}' '{ROOT / 'tests'}' ."))),
    "docs/embeddings.md": Needs(embeddings, mindspore=True),
    "docs/first-hour.md": Needs(mindspore=True),
    "docs/from-mosec.md": Needs(capitals),
    "docs/from-torchserve.md": Needs(torchserve_store),
    "docs/grpc.md": Needs(digits_server, mindspore=True, long=True),
    "docs/inference.md": Needs(rows_server),
    "docs/language-models.md": Needs(language_models, mindspore=True, long=True),
    "docs/llm-engine.md": Needs(qwen, mindspore=True, long=True),
    "docs/management.md": Needs(open_server),
    "docs/mindspore-models.md": Needs(exported, mindspore=True, long=True, collectives=True),
    "docs/parallel-models.md": Needs(mindspore=True, long=True, collectives=True),
    "docs/server.md": Needs(),
    "docs/workflows.md": Needs(pets),
    "docs/wrong-answers.md": Needs(net_and_checkpoint, mindspore=True, long=True),
    "examples/chat/README.md": Needs(example("chat"), mindspore=True, long=True, minutes=30),
    "examples/digits/README.md": Needs(example("digits"), mindspore=True, long=True),
    "examples/forecast/README.md": Needs(example("forecast"), mindspore=True, long=True),
    "examples/image-stages/README.md": Needs(example("image-stages"), mindspore=True, long=True),
    "examples/llama/README.md": Needs(example("llama"), mindspore=True, long=True, collectives=True),
    "examples/matmul/README.md": Needs(example("matmul"), mindspore=True, long=True, collectives=True),
    "examples/app/README.md": Needs(example_app),
    "examples/plugin/README.md": Needs(plugin),
    "examples/qwen/README.md": Needs(qwen, mindspore=True, long=True),
    "examples/servable/README.md": Needs(example("servable"), mindspore=True),
    "examples/topics/README.md": Needs(example("topics"), mindspore=True, long=True),
    "examples/workflow/README.md": Needs(example("workflow")),
}

INSTALLS = "installs what the tests run with already"
BUILDS = "builds with hatchling, from PyPI; tests/plugins.py installs the same"
HUB = "loads from a hub; the checkpoint that it would load stands for it"
NOT_RUN = {
    "README.md": {
        "./scripts/demo": "makes an environment of its own, then does what the examples do",
        "./scripts/test": "these tests",
        "python3 -m venv": INSTALLS,
        "pip install": INSTALLS,
        "msx-serve net.mindir": "tests/long/test_first_prediction.py types it, and its playground in a browser",
    },
    "docs/archives.md": {"msx-archiver --model-name matmul": "needs MindIR files of eight ranks"},
    "docs/engines.md": {"msx-serve doctor --huggingface": "needs the weights of a hub's model"},
    "docs/interpreters.md": {
        "msx-serve doctor": "needs vLLM in an environment",
        "python3": INSTALLS,
        "/opt/vllm": INSTALLS,
    },
    "docs/benchmarks.md": {
        "pip install": INSTALLS,
        "sudo apt-get": "installs programs on the machine",
        "python -m benchmarks overhead": "takes minutes, and a machine that does nothing else",
        "python -m benchmarks all": "takes an hour, and a machine that does nothing else",
    },
    "docs/benchmarks/engines.md": {
        "python -m benchmarks engines": "needs vLLM, and a machine that does nothing else",
        "python -m benchmarks llm-operators": "needs a model's folder, and a machine that does nothing else",
    },
    "docs/deploy.md": {
        "docker": "needs Docker's engine; tests/deploy runs what the image starts",
        "export": "for the command behind it",
        "python3 -m venv": INSTALLS,
        "useradd": "changes the machine",
        "install": "changes the machine",
        "systemctl": "changes the machine; tests/deploy checks the unit",
    },
    "docs/devices.md": {"scripts/gpu-check": "needs GPUs; tests/gpu_check runs it where they are simulated"},
    "docs/first-hour.md": {
        "python3 -m venv": INSTALLS,
        "pip install": INSTALLS,
        "msx-serve doctor": "says what a machine lacks; tests/frontend/cli looks at it",
    },
    "docs/from-torchserve.md": {"pip install": "installs torch, which is larger than all the rest"},
    "docs/grpc.md": {"pip install": INSTALLS, "grpcurl": "a program in Go that the tests do not bring"},
    "docs/kserve.md": {"pip install": "tests/contract uses the client, in an environment of its own"},
    "docs/kubernetes.md": dict.fromkeys(
        ("kubectl", "helm", "docker"), "needs a cluster; tests/deploy checks the manifests"
    ),
    "docs/embeddings.md": {
        "hf download": HUB,
        "curl http://127.0.0.1:8080/predictions/minilm": "needs the vectors of 384 numbers of the real model",
        "curl http://127.0.0.1:8080/predictions/ranker": "needs a server; tests/e2e/test_classification.py asks one",
        "curl http://127.0.0.1:8080/v1/rerank": "needs a server; tests/e2e/test_classification.py asks one",
    },
    "docs/vllm-routes.md": {"curl": "needs a server; tests/e2e/test_classification.py asks one"},
    "docs/llm-engine.md": {
        "msx-serve --start --huggingface": "a second server; tests/e2e/test_kserve_runtime.py starts one so"
    },
    "docs/stages.md": {
        "msx-archiver --model-name images": "needs a MindIR file; tests/archiver packs the same options",
        "msx-serve --start": "serves what the command before it packs; tests/e2e/test_stages.py serves others",
        "curl --data-binary @cat.jpg": "asks the server of the command before it",
    },
    "examples/app/README.md": {"pip install": BUILDS},
    "examples/plugin/README.md": {"pip install": BUILDS},
    "examples/qwen/README.md": {"pip install": HUB, "hf download": HUB},
}
"""Commands by their beginning, and why no test types them."""


def runs(page: str, command: str) -> bool:
    return not any(command.startswith(beginning) for beginning in NOT_RUN.get(page, {}))


def marked(page: str, needs: Needs) -> object:
    marks = [pytest.mark.mindspore] * needs.mindspore + [pytest.mark.long] * needs.long
    marks += [pytest.mark.collectives] * needs.collectives
    marks += [pytest.mark.timeout(60 * needs.minutes)] if needs.minutes else []
    return pytest.param(page, marks=marks)


@pytest.mark.parametrize("page", [marked(page, needs) for page, needs in PAGES.items()])
def test_what_a_page_says_happens(page: str, tmp_path: Path) -> None:
    folder = tmp_path / (Path(page).parent.name or "checkout")
    folder.mkdir()
    shell = PageShell(folder, 60 * PAGES[page].minutes or LIMIT)
    text = (ROOT / page).read_text()
    try:
        PAGES[page].prepare(shell)
        for name, content in files(text).items():
            (folder / name).write_text(shell.translate(content))
        for block in blocks(text):
            ran = [shell.translate(command) for command in block.commands if runs(page, command)]
            refused = '"code": ' in block.shown
            actual = "".join(shell.run(command, refused=refused) for command in ran)
            shown = shell.translate(block.shown)
            assert not ran or shows(actual, shown), f"{ran}\nsay\n{actual}\nand the page shows\n{shown}"
    finally:
        shell.stop()


@pytest.mark.parametrize("page", pages())
def test_each_command_is_run_or_said_not_to_be(page: str) -> None:
    text = (ROOT / page).read_text()
    assert "```\n$ " not in text, "commands stand in a block of the language console"
    commands = [command for block in blocks(text) for command in block.commands]
    assert (page in PAGES) == any(runs(page, command) for command in commands)
    for beginning in NOT_RUN.get(page, {}):
        assert any(command.startswith(beginning) for command in commands), beginning
