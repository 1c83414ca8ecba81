from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from msx_archiver.cli import main
from msx_archiver.workflow_cli import main as workflow_main
from tests.archiver.conftest import FILES, HANDLER, tree, write_zip

InFolder = Callable[..., Path]
DATA = Path(__file__).parents[1] / "core" / "data"


def run(*args: str) -> Result:
    return CliRunner().invoke(main, list(args), prog_name="msx-archiver")


def test_options_alone_pack_as_torch_model_archiver_does(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER, w__ckpt="w", r__txt="", c__yaml="batchSize: 2")
    short = ["-v", "1.0", "-r", "r.txt", "-c", "c.yaml", "-f"]
    result = run("--model-name", "m", "--handler", "h.py", "--serialized-file", "w.ckpt", *short)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "m.mar\n", "")
    assert Path("m.mar").is_file()


def test_pack_takes_the_same_options(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER)
    options = ["--model-name", "m", "--version", "1.0", "--handler", "h.py"]
    assert run("pack", *options).stdout == "m.mar\n"
    assert run("pack", *options).stderr == run(*options).stderr
    assert run("pack", *options[2:]).stderr.endswith("Missing option '--model-name'.\n")


def test_pack_is_not_followed_by_a_command() -> None:
    result = run("pack", "verify", "m.mar")
    assert result.exit_code == 2
    assert "`pack` takes options only, and 'verify' is a command." in result.stderr


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("p", "plain,pack"),
        ("pack --model-n", "plain,--model-name"),
        ("ver", "plain,verify"),
        ("--model-n", "plain,--model-name"),
    ],
)
def test_a_shell_completes_commands_and_options(typed: str, completed: str) -> None:
    words = f"msx-archiver {typed}"
    env = {"_MSX_ARCHIVER_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(typed.split()))}
    assert CliRunner().invoke(main, [], env=env, prog_name="msx-archiver").stdout.split() == [completed]


@pytest.mark.parametrize(("args", "code"), [(["--help"], 0), (["verify", "no.mar"], 1), (["verify"], 2), (["--x"], 2)])
def test_exit_codes(in_folder: InFolder, args: list[str], code: int) -> None:
    in_folder()
    assert run(*args).exit_code == code


def test_export_path_is_made(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER)
    args = ["--model-name=m", "--version=1.0", "--handler=h.py:handle", "--export-path=a/b", "--archive-format=tgz"]
    assert run(*args).stdout == "a/b/m.tar.gz\n"


def test_refusal_is_one_sentence_and_status_1(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER)
    args = ["--model-name", "m", "--version", "1.0", "--handler", "h.py"]
    run(*args)
    result = run(*args)
    assert result.exit_code == 1
    words = "m.mar already exists. Give --force/-f to overwrite it, or -o FILE to make another one."
    assert result.stderr == f"Error: {words}\n"
    assert result.stdout == ""


def test_a_second_version_gets_a_file_of_its_own(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER)
    args = ["--model-name", "m", "--handler", "h.py", "--version"]
    assert run(*args, "1.0").stdout == "m.mar\n"
    refused = run(*args, "2.0")
    assert refused.exit_code == 1
    assert refused.stderr == (
        "Error: m.mar already exists, and holds version 1.0 of m. Give -o m-2.0.mar to make another one, or --force/-f "
        "to overwrite it.\n"
    )
    assert run(*args, "2.0", "-o", "m-2.0.mar").stdout == "m-2.0.mar\n"
    assert run(*args, "2.0", "--output=new/store/m-2.0.mar").stdout == "new/store/m-2.0.mar\n"


def test_an_output_has_its_folder(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER)
    result = run("--model-name=m", "-v1", "--handler=h", "-om.mar", "--export-path=out")
    assert result.exit_code == 2
    assert "-o names the file with its folder: leave --export-path out." in result.stderr
    workflow = ["--workflow-name=w", "--spec-file=h.py", "-ow.war", "--export-path=out"]
    assert "leave --export-path out" in CliRunner().invoke(workflow_main, workflow).stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--model-name", "m", "--version", "1"], "Missing option '--handler'"),
        (["--model-name", "m", "--handler", "h"], "Missing option '-v / --version'"),
        (["--handler", "h", "--version", "1"], "Missing option '--model-name'"),
        (["--archive-format", "rar"], "rar"),
        (["--runtime", "ruby"], "ruby"),
        (["explode"], "No such command 'explode'"),
        (["unpack", "m.mar"], "Missing option '--to'"),
        (["--nonsense"], "No such option"),
    ],
)
def test_wrong_usage_is_status_2(in_folder: InFolder, args: list[str], words: str) -> None:
    in_folder(h__py=HANDLER)
    result = run(*args)
    assert result.exit_code == 2
    assert words in result.stderr


def test_warnings_go_to_stderr(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER)
    result = run("--model-name", "m", "-v", "1", "--handler", "h", "--extra-files", "*.none")
    assert result.exit_code == 0
    assert result.stderr == "Warning: --extra-files: nothing matches '*.none'.\n"


@pytest.mark.parametrize("flag", ["--version", "-v"])
def test_version_alone_is_the_tools(flag: str) -> None:
    result = run(flag)
    assert (result.exit_code, result.stdout) == (0, f"msx-archiver {version('msx-serve')}\n")
    workflow = CliRunner().invoke(workflow_main, [flag], prog_name="msx-workflow-archiver")
    assert (workflow.exit_code, workflow.stdout) == (0, f"msx-workflow-archiver {version('msx-serve')}\n")


def test_version_with_anything_else_is_the_models(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER)
    result = run("--version", "--model-name", "m", "--handler", "h.py")
    assert result.exit_code == 2
    assert run("--model-name", "m", "--handler", "h.py", "--version").exit_code == 2


@pytest.mark.parametrize("command", [["inspect"], ["verify"], ["unpack", "--to", "out"]])
def test_bad_archive_is_status_1_for_every_command(in_folder: InFolder, command: list[str]) -> None:
    write_zip(in_folder() / "evil.mar", [*FILES.items(), ("../evil", b"")])
    result = run(*command, "evil.mar")
    assert result.exit_code == 1
    assert "'../evil'" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert run(*command, "none.mar").exit_code == 1
    assert [path.name for path in Path().iterdir()] == ["evil.mar"]


def packed(in_folder: InFolder) -> str:
    mindir = (DATA / "dynamic.mindir").read_bytes()
    in_folder(h__py=HANDLER, net__mindir=mindir, c__yaml="batchSize: 2\nbatchsize: 3\n")
    args = ["--model-name", "m", "-v", "1.5", "--handler", "h.py", "--serialized-file", "net.mindir"]
    return run(*args, "-c", "c.yaml").stdout.strip()


def test_inspect_in_plain_lines(in_folder: InFolder) -> None:
    result = run("inspect", packed(in_folder))
    assert result.exit_code == 0
    for line in ("m 1.5", "net.mindir", "input   x: float32[?, 4]", "output  output_0: float32[?, 3]", "batchSize: 2"):
        assert line in result.stdout
    assert "did you mean batchSize?" in result.stderr


def test_inspect_as_json(in_folder: InFolder) -> None:
    report = json.loads(run("inspect", "--json", packed(in_folder)).stdout)
    assert report["manifest"]["model"]["modelVersion"] == "1.5"
    (graph,) = report["graphs"]
    assert graph["inputs"] == [{"name": "x", "dtype": "float32", "datatype": "FP32", "shape": [-1, 4]}]
    by_path = {file["path"]: file for file in report["files"]}
    assert by_path["h.py"]["size"] == len(HANDLER)
    assert by_path["h.py"]["sha256"] == report["manifest"]["files"]["h.py"]["sha256"]


def test_verify(in_folder: InFolder, mar: Path) -> None:
    assert run("verify", packed(in_folder)).stdout == "m.mar is whole: 3 files agree with their digests.\n"
    assert "its manifest has no digests" in run("verify", str(mar)).stdout


def test_unpack(mar: Path, tmp_path: Path) -> None:
    assert run("unpack", str(mar), "--to", str(tmp_path / "out")).exit_code == 0
    assert tree(tmp_path / "out") == FILES


def test_unpack_may_be_told_to_trust_a_high_ratio(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "m.mar", [("zeros", bytes(101 << 20)), *FILES.items()])
    assert run("unpack", str(path), "--to", str(tmp_path / "out")).exit_code == 1
    assert run("unpack", str(path), "--to", str(tmp_path / "out"), "--max-ratio", "2000").exit_code == 0


def on_terminal(*args: str) -> str:
    """Run the command as a person does: both outputs are a terminal."""
    master, slave = pty.openpty()
    command = [sys.executable, "-c", "from msx_archiver.cli import main; main()", *args]
    env = {**os.environ, "TERM": "xterm", "PYTHONUTF8": "1"}
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env) as process:
        os.close(slave)
        output = b""
        try:
            while chunk := os.read(master, 1 << 16):
                output += chunk
        except OSError:  # how Linux says that the other side of a terminal is closed
            pass
        os.close(master)
    assert process.returncode == 0
    return output.decode()


def test_terminal_gets_a_table_and_a_progress_bar(in_folder: InFolder) -> None:
    path = packed(in_folder)
    assert "┃" in on_terminal("inspect", path)
    assert "Verifying m.mar" in on_terminal("verify", path)
    assert "Packing m.mar" in on_terminal("--model-name", "m", "-v", "1", "--handler", "h.py", "-f")


def test_names_cannot_steer_the_terminal(in_folder: InFolder) -> None:
    manifest = json.dumps({"model": {"modelName": "m", "handler": "h\x1b[2J"}}).encode()
    path = write_zip(in_folder() / "m.mar", [("MAR-INF/MANIFEST.json", manifest)])
    assert "h\\x1b[2J" in run("inspect", str(path)).stdout


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from msx_archiver.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('msx_sdk', 'msgspec', 'yaml', 'rich', 'zipfile', 'tarfile', 'numpy', 'mindspore')"
        " if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "--serialized-file" in done.stdout
    assert done.stderr == "[]\n"


def test_every_option_and_command_is_in_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "archives.md").read_text()
    options = [option for param in main.params for option in param.opts]
    assert [option for option in options if f"`{option}`" not in page and f"`{option}," not in page] == []
    assert [command for command in main.commands if f"msx-archiver {command} " not in page] == []
