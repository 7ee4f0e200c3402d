"""Small trees for the tests of the tree room."""

import os
from pathlib import Path

from blueprint.tree import Made

ZERO = "sha256:" + "0" * 64


def made(*clusters, version="1.0.0"):
    return {name: Made(version, ZERO, ZERO, ZERO) for name in clusters}


def old_files(size=8):
    """Two clusters, four applications with `size` files each."""
    return {
        f"{cluster}/{app}/configmap-{n}.yaml": f"kind: ConfigMap\nn: {n}\n".encode() * 20
        for cluster in ("prod-a", "staging")
        for app in ("chat", "queues")
        for n in range(size)
    }


def new_files(size=8):
    """The same with changed, removed and new files, an application gone and one come."""
    files = {path: data for path, data in old_files(size).items() if not path.startswith("staging/chat/")}
    for n in range(0, size, 2):
        files[f"prod-a/chat/configmap-{n}.yaml"] = f"changed: {n}\n".encode() * 30
        files[f"prod-a/training/deep/er/job-{n}.yaml"] = f"kind: Job\nn: {n}\n".encode()
    return files


def content(root: Path) -> dict[str, bytes]:
    """Everything below `root` that a reader sees: files, links and empty folders."""
    found: dict[str, bytes] = {}
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        for name in files:
            path = here / name
            data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            found[path.relative_to(root).as_posix()] = data
        if not folders and not files and here != root:
            found[here.relative_to(root).as_posix() + "/"] = b""
    return found


def beside(root: Path) -> list[str]:
    """What lies beside the root: nothing of ours, after a run that was not killed."""
    return sorted(path.name for path in root.parent.iterdir() if path != root)
