import os
import signal
import sys
import time
from pathlib import Path

import pytest

from blueprint.conform.daemon import Daemon, NotReady, free_ports

SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)",
]


@pytest.fixture
def start(tmp_path):
    started = []

    def begin(command, **options):
        started.append(Daemon("thing", command, tmp_path, **options))
        return started[-1]

    yield begin
    for daemon in started:
        daemon.stop()


def gone(pid):
    """Whether the process has ended; one that nobody has waited for yet has."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_it_runs_until_it_is_stopped(start):
    daemon = start(SLEEP)
    daemon.wait("its first line", lambda: "up" in daemon.tail(), 30)
    pid = int(daemon.pid_file.read_text())
    assert daemon.alive
    assert not gone(pid)
    daemon.stop()
    assert not daemon.alive
    assert gone(pid)
    assert not daemon.pid_file.exists()


def test_a_program_that_ignores_sigterm_is_killed(start, monkeypatch):
    monkeypatch.setattr("blueprint.conform.daemon.GRACE", 0.2)
    daemon = start(STUBBORN)
    daemon.wait("its first line", lambda: "up" in daemon.tail(), 30)
    pid = int(daemon.pid_file.read_text())
    daemon.stop()
    assert gone(pid)


def test_stop_may_be_called_twice(start):
    daemon = start(SLEEP)
    daemon.stop()
    daemon.stop()
    assert not daemon.alive


def test_a_killed_leash_leaves_no_program_after_stop(start):
    daemon = start(SLEEP)
    daemon.wait("its first line", lambda: "up" in daemon.tail(), 30)
    pid = int(daemon.pid_file.read_text())
    os.kill(os.getpgid(pid), signal.SIGKILL)
    daemon.stop()
    deadline = time.monotonic() + 30
    while not gone(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert gone(pid)


def test_a_program_that_ends_early_is_an_error_with_code_and_log(start):
    daemon = start([sys.executable, "-c", "print('no such flag'); raise SystemExit(7)"])
    with pytest.raises(NotReady, match=r"thing ended with code 7 before being ready\n(.|\n)*no such flag"):
        daemon.wait("being ready", lambda: False, 30)


def test_a_wait_is_bounded_and_says_what_for(start):
    daemon = start(SLEEP)
    with pytest.raises(NotReady, match=r"waited 0.1 s for /readyz of thing"):
        daemon.wait("/readyz", lambda: False, 0.1)


def test_the_environment_is_added_to(start):
    daemon = start(
        [sys.executable, "-c", "import os; print(os.environ['EXTRA'], flush=True)"], environment={"EXTRA": "7"}
    )
    deadline = time.monotonic() + 30
    while daemon.alive and time.monotonic() < deadline:
        time.sleep(0.02)
    assert daemon.tail() == "7"


def test_ports_differ():
    ports = free_ports(16)
    assert len(set(ports)) == 16
