"""The findings of pip-audit in sentences, with the packages that it could not look up, which may be vulnerable, too."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

MOST_NAMED = 5


def main() -> int:
    text = Path(sys.argv[1]).read_text()
    packages = json.loads(text)["dependencies"] if text else []
    packages = [one for one in packages if "editable" not in one.get("skip_reason", "")]
    vulnerable = [one for one in packages if one.get("vulns")]
    unknown = [one for one in packages if "skip_reason" in one]
    for one in vulnerable:
        print(*lines(one), sep="\n")
    looked_up = len(packages) - len(unknown)
    print(f"{len(packages)} packages, {looked_up} looked up, {len(vulnerable)} with known vulnerabilities.")
    if not packages or unknown:
        print(warning(unknown, looked_up), file=sys.stderr)
    return 1 if vulnerable else 2 if unknown or not packages else 0


def lines(package: dict[str, Any]) -> list[str]:
    name = f"{package['name']} {package['version']}"
    return [
        f"{name}: {found['id']}, mended in {', '.join(found['fix_versions']) or 'no version yet'}"
        for found in package["vulns"]
    ]


def warning(unknown: list[dict[str, Any]], looked_up: int) -> str:
    if not looked_up:
        return (
            "NOTHING WAS AUDITED: the database of vulnerabilities (pypi.org) cannot be reached from here. Run it on a "
            "machine that reaches it."
        )
    names = ", ".join(one["name"] for one in unknown[:MOST_NAMED])
    more = f" and {len(unknown) - MOST_NAMED} more" if len(unknown) > MOST_NAMED else ""
    return f"NOT AUDITED, because the database does not know them: {names}{more}."


if __name__ == "__main__":
    sys.exit(main())
