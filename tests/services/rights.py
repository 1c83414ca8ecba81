"""Tells who it is, what it may take, and which of the files that it is asked for it can read or write."""

import os
import resource
import tempfile

from msx_sdk import Handler


class Rights(Handler):
    def inference(self, inputs):
        return [self.told(one.get("body", one)) for one in inputs]

    def told(self, asked):
        with open("/proc/self/status") as status:
            state = dict(line.split(":\t", 1) for line in status)
        with open("/dev/stdout", "w") as stdout:
            print("said to /dev/stdout", file=stdout)
        with tempfile.NamedTemporaryFile() as own:
            temp = own.name
        return {
            "uids": list(os.getresuid()),
            "gids": list(os.getresgid()),
            "groups": os.getgroups(),
            "no_new_privileges": int(state["NoNewPrivs"]),
            "capabilities": int(state["CapEff"], 16),
            "nofile": list(resource.getrlimit(resource.RLIMIT_NOFILE)),
            "cwd": os.getcwd(),
            "home": os.path.expanduser("~"),
            "temp": temp,
            "cache_written": self.write(self.context.info.cache_dir),
            "home_written": self.write(os.path.expanduser("~")),
            "readable": {path: readable(path) for path in asked["paths"]},
            "writable": {path: os.access(path, os.W_OK) for path in asked["paths"]},
            "model_dir": str(self.context.model_dir),
        }

    def write(self, folder):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "written"), "w") as file:
            return file.write("x") == 1


def readable(path):
    try:
        if os.path.isdir(path):
            os.listdir(path)
        else:
            open(path, "rb").close()
    except PermissionError:
        return False
    return True
