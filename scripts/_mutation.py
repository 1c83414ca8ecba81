"""Runs Cosmic Ray's mutants of the modules whose logic matters most against their unit tests.

One mutant for each place and kind of change: a comparison has eight others, and the tests that notice one notice nearly
all. Mutants that no test can notice are left out: `|` in annotations, and `is` for `==` of the same object.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome

ROOT = Path(__file__).parents[1]
NOT_NOTICED = re.compile(
    r"BinaryOperator_BitOr_|_Is_Eq$|_IsNot_NotEq$|_Eq_Is$|_NotEq_IsNot$|VariableInserter|VariableReplacer"
)


class Subject(NamedTuple):
    sources: tuple[str, ...]
    """Globs of files."""
    tests: tuple[str, ...]
    """Arguments of pytest; the tests of the mutated file run first."""


SUBJECTS = {
    "batching": Subject(
        ("frontend/msx_frontend/queueing/*batching*.py", "frontend/msx_frontend/queueing/answer_rate.py"),
        ("tests/frontend/queueing",),
    ),
    "dispatcher": Subject(
        tuple(f"frontend/msx_frontend/queueing/{name}.py" for name in ("dispatcher", "job_queue", "sequence*")),
        ("tests/frontend/queueing",),
    ),
    "groups": Subject(("frontend/msx_frontend/workers/*.py",), ("tests/frontend/workers",)),
    "archives": Subject(
        ("archiver/msx_archiver/*.py", "frontend/msx_frontend/archives/*.py"),
        ("tests/archiver", "tests/frontend/archives"),
    ),
    "scheduler": Subject(
        tuple(f"backend/msx_llm/{name}.py" for name in ("scheduler", "steps", "step", "slots", "blocks", "sequence")),
        tuple(
            f"tests/llm/{name}.py"
            for name in (
                "test_scheduler",
                "test_steps",
                "test_step",
                "test_slots",
                "test_paged",
                "test_engine_properties",
            )
        ),
    ),
    "tokens": Subject(("frontend/msx_frontend/keys/*.py",), ("tests/frontend/keys",)),
}


def main() -> None:
    parser = ArgumentParser(prog="scripts/mutation", description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"of {', '.join(SUBJECTS)}; all by default")
    parser.add_argument("--sample", type=int, metavar="N", help="at most N mutants of each subject")
    parser.add_argument("--timeout", type=float, default=120, metavar="SECONDS", help="of one run of the tests")
    arguments = parser.parse_args()
    if unknown := set(arguments.subjects) - set(SUBJECTS):
        parser.error(f"There are {', '.join(SUBJECTS)}, not {', '.join(sorted(unknown))}.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the copy is removed then, too
    with tempfile.TemporaryDirectory(prefix="msx-mutation-") as copy:
        Path(copy).chmod(0o755)  # some tests are other users, who have to read it
        copy_checkout(Path(copy))
        for name in arguments.subjects or SUBJECTS:
            run(name, SUBJECTS[name], arguments.sample, arguments.timeout)


def copy_checkout(copy: Path) -> None:
    """The files that git knows, as they are now; from here on the process works in the copy."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    os.chdir(copy)
    os.environ["PYTHONPATH"] = os.pathsep.join({str(package.parent) for package in copy.glob("*/msx_*/")})
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def run(name: str, subject: Subject, sample: int | None, timeout: float) -> None:
    mutants = list(mutants_of(subject))
    chosen = sorted(drawn(mutants, sample), key=lambda mutant: (str(mutant.module_path), mutant.start_pos))
    began, survivors = time.monotonic(), 0
    check_that_tests_pass(subject)
    for number, mutant in enumerate(chosen, 1):
        print(f"{name}: {number} of {len(chosen)}", end="\r", file=sys.stderr, flush=True)
        result = mutate_and_test([mutant], test_command(subject, mutant.module_path), timeout)
        if result.test_outcome is not TestOutcome.KILLED:
            survivors += 1
            print(f"{mutant.module_path}:{mutant.start_pos[0]} {mutant.operator_name}\n{result.diff}\n", flush=True)
    minutes = (time.monotonic() - began) / 60
    print(
        f"{name}: {len(chosen) - survivors} of {len(chosen)} mutants were noticed "
        f"({1 - survivors / len(chosen):.1%}; {len(mutants)} in all; {minutes:.0f} minutes)",
        flush=True,
    )


def mutants_of(subject: Subject) -> Iterator[MutationSpec]:
    """One for each place and kind of change, at random, but the same in each run."""
    for path in chain.from_iterable(sorted(Path().glob(glob)) for glob in subject.sources):
        places: dict[object, list[MutationSpec]] = {}
        for mutant in all_mutants(path):
            if not NOT_NOTICED.search(mutant.operator_name):
                places.setdefault((mutant.operator_name.split("_")[0], mutant.start_pos), []).append(mutant)
        for number, mutants in enumerate(places.values()):
            yield random.Random(f"{path}{number}").choice(mutants)


def all_mutants(path: Path) -> list[MutationSpec]:
    with use_db("mutants.sqlite") as work:
        init([path], work, {})
        mutants = [mutant for item in work.work_items for mutant in item.mutations]
    return sorted(mutants, key=lambda mutant: (mutant.operator_name, mutant.occurrence))


def drawn(mutants: Sequence[MutationSpec], sample: int | None) -> Sequence[MutationSpec]:
    return mutants if sample is None or sample >= len(mutants) else random.Random(0).sample(mutants, sample)


def check_that_tests_pass(subject: Subject) -> None:
    """A test that fails anyway would seem to notice every mutant."""
    subprocess.run(test_command(subject, Path()).split(), check=True, stdout=subprocess.DEVNULL)


def test_command(subject: Subject, mutated: Path) -> str:
    first = [str(path) for folder in subject.tests for path in sorted(Path(folder).rglob(f"test_{mutated.name}"))]
    return " ".join([sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *first, *subject.tests])


if __name__ == "__main__":
    main()
