"""`python -m bench.signing`: sign and verify 10,000 files, beside cosign over a checksum list and model-signing.

The same files for all; every row is a fresh process that starts from nothing. The Sigstore is the offline one of the
tests, in this process, so that no network is measured. Peers that are not installed are left out, and said to be.
"""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from bench import page
from bench.process import Failed, Series, measure
from blueprint.conform.programs import find
from blueprint.errors import EnvironmentLacks
from tests.attest.sigstore import Sigstore
from tests.attest.world import RENDERER, write_tree

ROOT = Path(__file__).resolve().parent.parent
_FOLDERS = 50

BUDGETS = {"`blueprint sign`": 2.0, "`blueprint verify`": 1.0}
"""Seconds of CPU for 10,000 files: one thread does the work, so that an idle machine takes as long by the clock."""

_HEAD = """\
# Signing, measured

Written by `python -m bench.signing` on {day}; not edited by hand. {files:,} files, {size:.0f} MB.

| row | wall s | CPU s | peak MiB | budget | proves |
| --- | ---: | ---: | ---: | --- | --- |
"""

PROVES = {
    "`blueprint sign`": "list and provenance by an identity, time-stamped and logged, each verified right after",
    "`blueprint verify`": "signature, identity, issuer, time, log; no file more, less or other; modes and links",
    "`blueprint sign --key`": "list and provenance by a key",
    "`blueprint verify --key`": "as above, without identity, time and log",
    "`sha256sum -c`, then `cosign verify-blob`": "signature by a key; listed files; files beside the list go unseen",
    "`model_signing sign key`": "list by a key",
    "`model_signing verify key`": "signature by a key; no file more, less or other, Git's own aside; no modes",
}


def main() -> int:
    """Measure, print and write the page; 0 measured, 1 something failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.signing", description="Measure signing beside the peers.")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "SIGNING.md")
    options = parser.parse_args()
    before = os.getloadavg()[0]
    try:
        with tempfile.TemporaryDirectory(prefix="blueprint-bench-") as scratch, Sigstore.running() as store:
            folder = Path(scratch)
            size = _prepare(folder, options.files, store)
            rows = dict(_rows(folder, store, options.runs))
            facts = page.machine(folder, (before, os.getloadavg()[0]))
    except Failed as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 1
    text = _HEAD.format(day=datetime.date.today().isoformat(), files=options.files, size=size / 1e6)
    text += "".join(f"{_row(name, series)}\n" for name, series in rows.items())
    if missing := [name for name in PROVES if name not in rows]:
        text += f"\nNot measured, for the program is not installed: {', '.join(missing)}.\n"
    text += f"\n*wall*: median, shortest and longest of {options.runs} runs; it follows what else the machine does "
    text += "(see the load).\nThe budget is of *CPU*. Start-up is in both.\n\n"
    text += "".join(f"- {name}: {value}\n" for name, value in facts.items())
    print(text)
    options.out.write_text(text, "utf-8")
    return 0


def _row(name: str, series: Series) -> str:
    low, high = series.spread
    budget = BUDGETS.get(name)
    held = "" if budget is None else f"{budget:.1f} s: {'held' if series.cpu <= budget else 'missed'}"
    wall = f"{series.wall:.2f} ({low:.2f}-{high:.2f})"
    return f"| {name} | {wall} | {series.cpu:.2f} | {series.peak:.0f} | {held} | {PROVES[name]} |"


def _prepare(folder: Path, files: int, store: Sigstore) -> int:
    """Write the tree and the keys; returns the bytes of the tree."""
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings-{n}\ndata:\n" + "  key: value\n" * 60
    contents = {f"prod-a/app-{n % _FOLDERS}/configmap-{n}.yaml": body.replace("{n}", str(n)) for n in range(files)}
    (folder / "rendered").mkdir()
    write_tree(folder / "rendered", contents)
    (folder / "trust.json").write_text(store.trust_config())
    key = ec.generate_private_key(ec.SECP256R1())
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / "key.pub").write_bytes(public)
    return sum(len(text) for text in contents.values())


def _rows(folder: Path, store: Sigstore, runs: int) -> Iterator[tuple[str, Series]]:
    blueprint = [sys.executable, "-m", "blueprint"]
    sign = [*blueprint, "sign", "rendered"]
    verify = [*blueprint, "verify", "rendered"]

    def fresh(_: int) -> None:
        (folder / "token").write_text(store.token(RENDERER))

    given = ["--trust-config", "trust.json", "--identity-token", "token"]
    yield "`blueprint sign`", measure([*sign, *given], cwd=folder, runs=runs, before=fresh)
    who = ["--identity", RENDERER, "--issuer", store.issuer, "--trusted-root", "trust.json"]
    yield "`blueprint verify`", measure([*verify, *who], cwd=folder, runs=runs)
    yield "`blueprint sign --key`", measure([*sign, "--key", "key.pem"], cwd=folder, runs=runs)
    yield "`blueprint verify --key`", measure([*verify, "--key", "key.pub"], cwd=folder, runs=runs)
    shutil.rmtree(folder / "rendered" / ".attestations")
    yield from _cosign(folder, runs)
    yield from _model_signing(folder, runs)


def _cosign(folder: Path, runs: int) -> Iterator[tuple[str, Series]]:
    """A checksum list that cosign signs: what people do without a tool of their own."""
    try:
        cosign = str(find("cosign").path)
    except EnvironmentLacks:
        return
    setup = (
        f"COSIGN_PASSWORD= {cosign} import-key-pair --key key.pem -y"
        f" && {cosign} signing-config create --out none.json"
        " && find rendered -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum > list"
        f" && COSIGN_PASSWORD= {cosign} sign-blob --key import-cosign.key --signing-config none.json -y"
        " --bundle list.json list"
    )
    measure(["sh", "-c", setup], cwd=folder, runs=0)
    check = f"sha256sum --quiet --strict -c list && {cosign} verify-blob --key key.pub --bundle list.json"
    command = ["sh", "-c", f"{check} --insecure-ignore-tlog list"]
    yield "`sha256sum -c`, then `cosign verify-blob`", measure(command, cwd=folder, runs=runs)


def _model_signing(folder: Path, runs: int) -> Iterator[tuple[str, Series]]:
    program = shutil.which("model_signing")
    if program is None:
        return
    sign = [program, "sign", "key", "rendered", "--private_key", "key.pem", "--signature", "model.sig"]
    yield "`model_signing sign key`", measure(sign, cwd=folder, runs=runs)
    verify = [program, "verify", "key", "rendered", "--public_key", "key.pub", "--signature", "model.sig"]
    yield "`model_signing verify key`", measure(verify, cwd=folder, runs=runs)


if __name__ == "__main__":
    sys.exit(main())
