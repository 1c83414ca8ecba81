"""Hooks of mkdocs.yml. What pages link to outside of docs/ becomes pages of the site, too, below `repository/`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File
from pymdownx.slugs import slugify

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".toml": "toml", ".json": "json"}


def on_config(config: Any) -> Any:
    """Headings have the anchors that they have in a repository's browser."""
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds what is linked to, and what that links to."""
    known: set[Path] = set()
    found = {target for path in (ROOT / "docs").rglob("*.md") for target in _outside(path)}
    while found - known:
        path = (found - known).pop()
        known.add(path)
        files.append(File.generated(config, _place(path), content=_content(path)))
        found |= _outside(path)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    if page.file.generated_by:
        return markdown
    return _rewritten(markdown, ROOT / "docs" / page.file.src_uri)


def on_post_build(config: Any) -> None:
    """The theme's script would fetch what old browsers and diagrams need from another host."""
    for path in Path(config.site_dir, "assets", "javascripts").glob("bundle.*.js"):
        path.write_text(path.read_text().replace("https://unpkg.com/", "not-here/"))


def _outside(path: Path) -> set[Path]:
    if path.suffix != ".md":
        return set()
    parts = _FENCE.split(path.read_text())[::2]
    targets = {(path.parent / match[1]).resolve() for part in parts for match in _LINK.finditer(part)}
    return {target for target in targets if ROOT / "docs" not in target.parents and target.exists()}


def _content(path: Path) -> str:
    if path.suffix == ".md":
        return _rewritten(path.read_text(), path)
    title = f"# {path.relative_to(ROOT)}\n\n"
    if path.is_dir():
        return title + "".join(f"- `{one.relative_to(path)}`\n" for one in sorted(path.rglob("*")) if one.is_file())
    return f"{title}```{_LANGUAGES.get(path.suffix, 'text')}\n{path.read_text()}\n```\n"


def _rewritten(markdown: str, path: Path) -> str:
    """The page with links to where the site has their targets."""
    here = os.path.dirname(_place(path))

    def link(match: re.Match[str]) -> str:
        target = (path.parent / match[1]).resolve()
        return f"]({os.path.relpath(_place(target), here or '.')}{match[2] or ''})" if target.exists() else match[0]

    parts = _FENCE.split(markdown)
    parts[::2] = [_LINK.sub(link, part) for part in parts[::2]]
    return "".join(parts)


def _place(path: Path) -> str:
    """Place on the site."""
    if ROOT / "docs" in path.parents:
        return str(path.relative_to(ROOT / "docs"))
    return f"repository/{path.relative_to(ROOT)}{'' if path.suffix == '.md' else '.md'}"
