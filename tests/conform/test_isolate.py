"""Namespaces of our own: nothing gets out, nothing outside changes. In a process of its own: there is no way back."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import socket, sys
from pathlib import Path
from blueprint.conform.isolate import isolate, private
why = isolate()
if why:
    print("no:", why)
    sys.exit()
with socket.socket() as server:
    server.bind(("127.0.0.1", 0))
    server.listen()
    socket.create_connection(server.getsockname(), 5).close()
try:
    socket.create_connection(("192.0.2.1", 80), 2)
    print("got out")
except OSError as error:
    print("out:", error.strerror or error)
private(Path("/etc"))
private(Path("/etc"))
Path("/etc/blueprint-test").write_text("inside")
print("inside:", Path("/etc/blueprint-test").read_text(), Path("/etc/passwd").exists())
"""


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root on Linux may make namespaces")
def test_nothing_gets_out_and_nothing_outside_changes():
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.stdout.startswith("no:"):
        pytest.skip(done.stdout.strip())
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["out: Network is unreachable", "inside: inside True"]
    assert not Path("/etc/blueprint-test").exists()


OTHERS = """
import os
from blueprint.conform.isolate import isolate
if os.geteuid() == 0:
    os.setuid(65534)
print(isolate())
"""


def test_others_are_told_why_not():
    done = subprocess.run([sys.executable, "-c", OTHERS], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == ""
    assert done.stdout.strip() in {"only root may make namespaces", "namespaces are Linux'"}
