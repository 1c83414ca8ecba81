"""Runs the checks of one file with the real client in it; prints their names and tracebacks ("" is well) as JSON.

python run.py FILE URL MANAGEMENT_URL KEY MANAGEMENT_KEY GRPC_ADDRESS
"""

import asyncio
import importlib.util
import inspect
import json
import sys
import traceback
from pathlib import Path

LIMIT = 60.0
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


def main():
    path = Path(sys.argv[1])
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    checks = {name: check for name, check in vars(module).items() if name.startswith("check_")}
    print(json.dumps({name: outcome(check) for name, check in checks.items()}))


if __name__ == "__main__":
    main()
