"""The commit that this MSX was built from: noted by the build, or git's in a checkout.

hatch_build.py runs this file alone, before anything is installed: it imports the standard library only.
"""

from pathlib import Path

NOTE = "commit.txt"
"""File beside this one in a wheel and an sdist: what `of_checkout` said when it was built."""
_GIT_LIMIT = 10.0
"""Seconds."""


def describe_commit(folder: Path = Path(__file__).parent) -> str:
    """`commit 6556503a of 2026-11-27`, or `commit unknown` where neither the build nor git says it."""
    note = folder / NOTE
    return note.read_text().strip() if note.is_file() else of_checkout(folder.parents[1]) or "commit unknown"


def of_checkout(root: Path) -> str:
    """Commit of the repository at `root`, in the same words; empty where there is none, or git cannot be run."""
    if not (root / ".git").exists():
        return ""
    log, status = (
        _git(root, "log", "-1", "--abbrev=8", "--format=commit %h of %cs"),
        _git(root, "status", "--porcelain"),
    )
    return log and f"{log}, with changes" if status else log


def _git(root: Path, *arguments: str) -> str:
    import subprocess  # takes long: only `--version` asks

    command = ["git", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_LIMIT, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
