"""Run a command that ends when its starter ends, however that happens.

    python leash.py PIDFILE GRACE COMMAND...

The starter holds the other end of standard input. When the kernel closes it, because the starter closed it, returned or
was killed, the command gets SIGTERM and, GRACE seconds later, SIGKILL. A pipe and not Linux's parent-death signal: that
one is sent when the *thread* that started the process ends, and needs code between fork and exec, which a threaded
Python must not run. Standard library only, and run as a file: it starts fast and nothing around it can break it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path


def main(pid_file: str, grace: str, *command: str) -> None:
    """Start the command, note its pid, and end with its exit code or when standard input ends."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    Path(pid_file).write_text(f"{child.pid}\n", "ascii")

    def follow() -> None:
        code = child.wait()
        os._exit(code if code >= 0 else 128 - code)

    threading.Thread(target=follow, daemon=True).start()
    while os.read(0, 4096):
        pass
    child.terminate()
    try:
        child.wait(float(grace))
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
