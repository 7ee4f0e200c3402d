import os

import pytest


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """No test here pulls the plug, and some switch trees a thousand times: do not wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
