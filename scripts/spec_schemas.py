"""Write the JSON Schemas of the specs to blueprint/spec/schemas/."""

from __future__ import annotations

from pathlib import Path

from blueprint.spec.schemas import files


def main() -> None:
    """Write what has changed, and delete what no kind has any more."""
    folder = Path(__file__).parents[1] / "blueprint" / "spec" / "schemas"
    folder.mkdir(exist_ok=True)
    wanted = files()
    for old in folder.glob("*.json"):
        if old.name not in wanted:
            old.unlink()
    for name, content in wanted.items():
        (folder / name).write_bytes(content)
    print(f"{len(wanted)} schemas in {folder}")


if __name__ == "__main__":
    main()
