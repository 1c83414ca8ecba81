"""Runs the checks of files with the real clients in them; prints their names and tracebacks ("" is well) as JSON.

python run.py FILE:FILE… URL MANAGEMENT_URL KEY MANAGEMENT_KEY GRPC_ADDRESS
"""

import asyncio
import importlib.util
import inspect
import json
import os
import sys
import traceback
from pathlib import Path

LIMIT = 180.0
"""Seconds for one check."""


def outcome(check):
    try:
        if inspect.iscoroutinefunction(check):
            asyncio.run(asyncio.wait_for(check(), LIMIT))
        else:
            check()
    except BaseException:
        return traceback.format_exc()
    return ""


def outcomes(path):
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    checks = {name: check for name, check in vars(module).items() if name.startswith("check_")}
    return {name: outcome(check) for name, check in checks.items()}


def main():
    paths = [*map(Path, sys.argv[1].split(os.pathsep))]
    print(json.dumps({path.stem: outcomes(path) for path in paths}))


if __name__ == "__main__":
    main()
