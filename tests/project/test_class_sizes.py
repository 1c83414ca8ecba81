"""No class is larger than a reader can hold, and no chain of base classes longer."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_METHODS = 30
"""Methods and properties of a class, with those that it inherits from our own classes."""
MOST_BASES = 3
"""Our own classes in the longest chain from a class to its last base, itself included."""


class Classes:
    """The classes of all modules below some folders, by the full names that imports give them."""

    def __init__(self, *folders: Path) -> None:
        self._nodes: dict[str, ast.ClassDef] = {}
        self._imports: dict[str, str] = {}
        for folder in folders:
            for path in sorted(folder.rglob("*.py")):
                self._read(path, ".".join(path.relative_to(folder.parent).with_suffix("").parts))
        named = filter(_is_public, [*self._nodes, *self._imports])
        self._dictated = {self._known(name) for name in named}
        """Classes that msx_sdk exports, wherever they stand."""

    def _read(self, path: Path, module: str) -> None:
        module = module.removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                self._nodes[f"{module}.{node.name}"] = node
            elif isinstance(node, ast.ImportFrom):
                for one in node.names:
                    self._imports[f"{module}.{one.asname or one.name}"] = f"{node.module}.{one.name}"

    def _known(self, name: str) -> str | None:
        """The full name of a class after all imports of it; None for one of a library."""
        seen = set[str]()
        while name not in self._nodes:
            module, _, last = name.rpartition(".")
            if name in seen or not module:
                return None
            seen.add(name)
            owner = self._imports.get(module)
            name = self._imports.get(name) or (f"{owner}.{last}" if owner else "")
        return name

    def _bases(self, name: str) -> list[str]:
        module = name.rpartition(".")[0]
        texts = [ast.unparse(base).partition("[")[0] for base in self._nodes[name].bases]
        return [known for text in texts if (known := self._known(f"{module}.{text}")) not in (None, name)]

    def depth(self, name: str) -> int:
        """A base that the SDK dictates is the last one, as a library's is."""
        deeper = [base for base in self._bases(name) if name in self._dictated or base not in self._dictated]
        return 1 + max(map(self.depth, deeper), default=int(bool(self._bases(name))))

    def methods(self, name: str) -> set[str]:
        """Without those that handlers' authors call or override: the SDK is what dictates them."""
        own = {one.name for one in self._nodes[name].body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))}
        inherited = set[str]().union(*map(self.methods, self._bases(name)))
        return inherited | ({one for one in own if one.startswith("_")} if name in self._dictated else own)

    def with_too_many_methods(self) -> set[str]:
        return {_last(name) for name in self._nodes if len(self.methods(name)) > MOST_METHODS}

    def too_deep(self) -> set[str]:
        return {_last(name) for name in self._nodes if self.depth(name) > MOST_BASES}


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _is_public(name: str) -> bool:
    return name.startswith("msx_sdk.") and "._" not in name


@cache
def product() -> Classes:
    return Classes(*(folder for folder in ROOT.glob("*/*") if (folder / "__init__.py").exists() and ours(folder)))


def ours(folder: Path) -> bool:
    return folder.parent.name not in ("tests", "examples", "benchmarks")


def test_no_class_has_too_many_methods() -> None:
    assert product().with_too_many_methods() == set()


def test_no_class_has_too_many_bases() -> None:
    assert product().too_deep() == set()


def written(folder: Path, **modules: str) -> Classes:
    for name, text in {"__init__": "", **modules}.items():
        (folder / "house").mkdir(exist_ok=True)
        (folder / "house" / f"{name}.py").write_text(text)
    return Classes(folder / "house")


def test_inherited_methods_count_once(tmp_path: Path) -> None:
    base = "class Base:\n" + "".join(f"    def m{number}(self): ...\n" for number in range(30))
    below = "from house.base import Base\nclass Below(Base):\n    def m1(self): ...\n"
    more = "from house import base as other\nclass More(other.Base):\n    async def one(self): ...\n"
    assert written(tmp_path, base=base, below=below, more=more).with_too_many_methods() == {"More"}


def test_bases_of_libraries_count_nothing(tmp_path: Path) -> None:
    chain = "class A(ABC): ...\nclass B(A): ...\nclass C(B[int]): ...\nclass D(C, abc.ABC): ...\n"
    text = f"import abc\nfrom abc import ABC\n{chain}"
    assert written(tmp_path, chain=text).too_deep() == {"D"}


def test_what_the_sdk_dictates_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "msx_sdk").mkdir()
    (tmp_path / "msx_sdk" / "__init__.py").write_text("from house.handler import Handler\n")
    handler = "class Base: ...\nclass Handler(Base):\n" + "".join(f"    def m{n}(self): ...\n" for n in range(31))
    own = "from msx_sdk import Handler\nclass A(Handler): ...\nclass B(A): ...\nclass C(B): ...\n"
    written(tmp_path, handler=handler, own=own)
    found = Classes(tmp_path / "house", tmp_path / "msx_sdk")
    assert (found.with_too_many_methods(), found.too_deep()) == (set(), {"C"})
