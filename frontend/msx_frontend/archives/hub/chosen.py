"""Which files of a repository are fetched: those that serving a local folder of that kind would use."""

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from msx_archiver.linked_checkpoint import CONFIG, is_read
from msx_archiver.members import normalise, path_problem
from msx_frontend.archives.guess import HANDLER, MANIFEST, MINDIR, PYTHON, SERVABLE
from msx_frontend.archives.hub.remote import MOST_FILES, HubError, HubFile, too_many

INDEX = "model.safetensors.index.json"
WHOLE = "model.safetensors"
MOST_INDEX = 64 << 20
_WEIGHTS = ".safetensors"
_OTHER_FORMS = ("original", "onnx", "openvino")
"""Folders in which repositories keep the same model for other programs."""


def chosen(files: Sequence[HubFile], read: Callable[[HubFile], bytes], *, archive: bool) -> list[HubFile]:
    """`read`: the bytes of a small file. Raises HubError for what nobody can serve, before anything large comes."""
    if len(files) > MOST_FILES:
        raise too_many()
    for file in files:
        if problem := path_problem(file.path):
            raise HubError(f"a file of it {problem}: {file.path[:200]!r}")
        if file.size < 0:
            raise HubError(f"the hub does not say how large {file.path} is")
    _check_conflicts(normalise(file.path) for file in files)
    wanted = [file for file in files if not _is_hidden(file.path)]
    return wanted if archive and wanted else _of_folder(wanted, read)


def _check_conflicts(paths: Iterable[str]) -> None:
    """No disk holds two files of one path, nor a file and a folder, as stores of objects do. Raises HubError."""
    ordered = sorted(path.replace("/", "\0") for path in paths)  # what is below a path follows it at once
    for above, below in pairwise(ordered):
        path, other = (one.replace("\0", "/")[:200] for one in (above, below))
        if above == below:
            raise HubError(f"{path!r} is there twice, which no disk can hold: rename one of them")
        if below.startswith(f"{above}\0"):
            raise HubError(
                f"{path!r} is a file and the folder of {other!r}, which no disk can hold: rename one of them"
            )


def _of_folder(files: list[HubFile], read: Callable[[HubFile], bytes]) -> list[HubFile]:
    root = {file.path: file for file in files if "/" not in file.path}
    if SERVABLE in root or any(file.path.startswith(f"{MANIFEST}/") for file in files):
        return files
    if CONFIG in root and any(path.endswith(_WEIGHTS) for path in root):
        weights = _used_weights(root, read)
        return [file for file in files if is_read(file.path) and _is_used(file.path, weights)]
    if not _has_handler(root):
        raise HubError(_nothing(root))
    return files


def _has_handler(root: dict[str, HubFile]) -> bool:
    own, models = ([path for path in root if path.endswith(end)] for end in (PYTHON, MINDIR))
    return HANDLER in root or len(own) == 1 or len(models) == 1


def _nothing(root: dict[str, HubFile]) -> str:
    if CONFIG in root:
        return "it has no *.safetensors, the only format of weights of language models that is read"
    return (
        f"it cannot be served: it has neither {MANIFEST}, {CONFIG} with *.safetensors, {SERVABLE}, {HANDLER}, nor "
        "exactly one *.py or one *.mindir file"
    )


def _used_weights(root: dict[str, HubFile], read: Callable[[HubFile], bytes]) -> frozenset[str]:
    """Many repositories have their weights several times, in other forms, of which one is read."""
    if INDEX not in root:
        own = frozenset(path for path in root if path.endswith(_WEIGHTS))
        return frozenset({WHOLE}) if WHOLE in own else own
    if root[INDEX].size > MOST_INDEX:
        raise HubError(f"{INDEX} is larger than {MOST_INDEX >> 20} MiB")
    try:
        named = frozenset(map(str, json.loads(read(root[INDEX]))["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise HubError(f"{INDEX} does not say in which files the weights are") from None
    if missing := sorted(named - root.keys()):
        raise HubError(f"{INDEX} names {missing[0][:200]}, which is not there")
    return named


def _is_used(path: str, weights: frozenset[str]) -> bool:
    if "/" in path:
        return path.partition("/")[0] not in _OTHER_FORMS
    return path in weights or not path.endswith(_WEIGHTS)


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.split("/"))
