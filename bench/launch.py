"""Run a pipe of commands and print what each took, as JSON; a process of its own, and a small one.

The kernel hands the peak memory of whoever starts a program down to that program, so whoever starts it must be small:
this file imports next to nothing. Usage: launch.py SECONDS OUT ERR '[["helm", ...], ["kubeconform", ...]]'
"""

import json
import os
import signal
import sys
import time


def main() -> None:
    """Start all commands, wait for all of them, print wall seconds and for each [exit code, CPU seconds, peak MiB]."""
    limit, out, err, commands = int(sys.argv[1]), sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    last, errors, source = os.open(out, flags, 0o644), os.open(err, flags, 0o644), os.open(os.devnull, os.O_RDONLY)
    running: list[int] = []

    def stop(*_: object) -> None:
        for process in running:
            os.kill(process, signal.SIGKILL)

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(limit)
    started = time.perf_counter()
    for position, command in enumerate(commands):
        following, target = os.pipe() if position < len(commands) - 1 else (-1, last)
        actions = [(os.POSIX_SPAWN_DUP2, source, 0), (os.POSIX_SPAWN_DUP2, target, 1), (os.POSIX_SPAWN_DUP2, errors, 2)]
        running.append(os.posix_spawnp(command[0], command, os.environ, file_actions=actions))
        os.close(source)
        os.close(target)
        source = following
    ended = []
    for process in running:
        _, status, usage = os.wait4(process, 0)
        code = os.waitstatus_to_exitcode(status)
        ended.append([code, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024])
    print(json.dumps([time.perf_counter() - started, ended]))


if __name__ == "__main__":
    main()
