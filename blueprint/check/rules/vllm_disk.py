"""Where a vLLM server may write: with a read-only root it needs at the least a folder for temporary files.

Sources: vllm 0.33.0 envs.py (VLLM_RPC_BASE_PATH is tempfile.gettempdir() unless set: sockets between its processes);
CPython Lib/tempfile.py (_candidate_tempdir_list, FileNotFoundError where none can be written).
"""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.check.engines import Engine, engines
from blueprint.check.graph import Graph
from blueprint.check.rules.say import say
from blueprint.check.shapes import items, known, mapping, maps, text
from blueprint.finding import Finding

_TEMPORARY = ("/tmp", "/var/tmp", "/usr/tmp")  # noqa: S108 - paths in a container
_VARIABLES = ("TMPDIR", "TEMP", "TMP")
_SHM = "/dev/shm"  # noqa: S108
_READ_ONLY = ("configMap", "secret", "downwardAPI", "projected", "image")


def nowhere_to_write(graph: Graph) -> Iterator[Finding]:
    """SRV246: the root file system is read-only, and no folder for temporary files is mounted."""
    for engine in engines(graph):
        context = mapping(engine.container.get("securityContext"))
        if context.get("readOnlyRootFilesystem") is not True or items(engine.container.get("envFrom")):
            continue
        if any(name in engine.variables for name in _VARIABLES) or engine.command.by_shell:
            continue
        if not any(_takes_temporary(engine, path) for path in _writable(engine)):
            message = "the root file system is read-only, and there is no folder for temporary files: vLLM cannot start"
            fix = "mount an emptyDir at /tmp, and others (or HF_HOME, VLLM_CACHE_ROOT) for its caches"
            yield say("SRV246", engine.manifest, message, f"{engine.at}.securityContext.readOnlyRootFilesystem", fix)


def _writable(engine: Engine) -> Iterator[str]:
    volumes = {text(volume.get("name")): volume for volume in maps(engine.pod.spec.get("volumes"))}
    for mount in maps(engine.container.get("volumeMounts")):
        volume = volumes.get(text(mount.get("name")), {})
        if mount.get("readOnly") is not True and not any(name in volume for name in _READ_ONLY):
            yield text(mount.get("mountPath")).rstrip("/")


def _takes_temporary(engine: Engine, path: str) -> bool:
    """Whether temporary files can lie there; the last place that Python tries is the folder in which it was started."""
    folder = engine.container.get("workingDir")
    if not known(path):
        return True
    if folder is None and path not in {_SHM, "/dev"} and not engine.version:
        return True  # another image, whose working directory is not known
    started = known(folder) if folder else "/vllm-workspace"
    return any(place == path or place.startswith(f"{path}/") for place in (*_TEMPORARY, started or path))


RULES = (nowhere_to_write,)
TREE = ()
