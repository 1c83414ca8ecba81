"""Prints what is wrong with the imports of each package; imports for type checkers count like all others.

- Cycles: modules that import each other, directly or by way of others.
- Folders that import each other: packages of one folder, each of which imports from the other.
- Imports upwards: from a layer of pyproject.toml to one above it, or to a neighbour that should be independent of it.
  Those that `ignore_imports` hides from lint-imports are printed, too.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any, NamedTuple

import grimp
from importlinter.api import read_configuration


class Finding(NamedTuple):
    title: str
    imports: tuple[tuple[str, str], ...]
    """Importer and imported module."""


class Section(NamedTuple):
    name: str
    findings: tuple[Finding, ...]


def main(packages: list[str]) -> int:
    configuration = read_configuration()
    known = configuration["session_options"]["root_packages"]
    if unknown := sorted(set(packages) - set(known)):
        print(f"{', '.join(unknown)}: not among the packages {', '.join(known)}", file=sys.stderr)
        return 2
    graph = grimp.build_graph(*known, cache_dir=None)
    contracts = [one for one in configuration["contracts_options"] if one["type"] == "layers"]
    found = 0
    for package in packages or known:
        sections = (
            Section("cycles", tuple(cycles(graph, package))),
            Section("pairs of folders that import each other", tuple(mutual_folders(graph, package))),
            Section("imports upwards", tuple(upward_imports(graph, package, contracts))),
        )
        print(f"{package}: {', '.join(f'{len(one.findings)} {one.name}' for one in sections)}")
        for section in sections:
            print_findings(graph, section)
            found += len(section.findings)
    return 1 if found else 0


def print_findings(graph: grimp.ImportGraph, section: Section) -> None:
    for finding in section.findings:
        print(f"  {section.name}: {finding.title}")
        for importer, imported in finding.imports:
            details = graph.get_import_details(importer=importer, imported=imported)
            lines = ", ".join(str(one["line_number"]) for one in details)
            print(f"    {importer} -> {imported}, line {lines}")


def cycles(graph: grimp.ImportGraph, package: str) -> Iterator[Finding]:
    """One for each group of modules of which each reaches all others."""
    modules = sorted(within(graph, package))
    reached = {module: graph.find_upstream_modules(module) for module in modules}
    seen: set[str] = set()
    for module in modules:
        if module in seen:
            continue
        group = [other for other in modules if other in reached[module] and module in reached[other]]
        seen.update(group)
        if group:
            group = sorted({module, *group})
            yield Finding(f"{len(group)} modules", tuple(imports_between(graph, group, group)))


def mutual_folders(graph: grimp.ImportGraph, package: str) -> Iterator[Finding]:
    for parent in sorted({package, *folders(graph, package)}):
        children = sorted(child for child in graph.find_children(parent) if graph.find_children(child))
        for left, right in combinations(children, 2):
            there = list(imports_between(graph, within(graph, left), within(graph, right)))
            back = list(imports_between(graph, within(graph, right), within(graph, left)))
            if there and back:
                yield Finding(f"{left} and {right}", (*there, *back))


def upward_imports(graph: grimp.ImportGraph, package: str, contracts: list[dict[str, Any]]) -> Iterator[Finding]:
    modules = within(graph, package)
    for contract in contracts:
        for container in contract.get("containers", [""]):
            for name, above in forbidden_pairs(container, contract["layers"]):
                importers = modules & within(graph, name)
                if found := tuple(imports_between(graph, importers, within(graph, above))):
                    yield Finding(f"{name} imports {above}", found)


def forbidden_pairs(container: str, layers: list[str]) -> Iterator[tuple[str, str]]:
    """Each module of a layer with all that it may not import; `|` in a layer separates what is independent."""
    above: list[str] = []
    for layer in layers:
        names = [f"{container}.{name.strip(' ()')}".strip(".") for name in re.split("[|:]", layer)]
        for name in names:
            neighbours = [other for other in names if other != name and "|" in layer]
            yield from ((name, other) for other in [*above, *neighbours])
        above += names


def folders(graph: grimp.ImportGraph, package: str) -> set[str]:
    return {module for module in graph.find_descendants(package) if graph.find_children(module)}


def within(graph: grimp.ImportGraph, module: str) -> set[str]:
    """A module and all below it; nothing, if there is not such a module."""
    return {module, *graph.find_descendants(module)} if module in graph.modules else set()


def imports_between(
    graph: grimp.ImportGraph, importers: Iterable[str], imported: Iterable[str]
) -> Iterator[tuple[str, str]]:
    targets = set(imported)
    for importer in sorted(importers):
        for module in sorted(graph.find_modules_directly_imported_by(importer) & targets):
            yield importer, module


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
