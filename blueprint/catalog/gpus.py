"""What is known about NVIDIA GPUs, and whether a MIG geometry can be cut from one: by exact search, not by counting."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from blueprint.catalog.tables import table

MEMORY_TOLERANCE = 0.02
"""How far a node's own memory label may be from the table's: drivers and ECC move it."""

_SUFFIX = re.compile(r"[+-].*$")


@dataclass(frozen=True, slots=True)
class Shape:
    """What a MIG instance takes: compute slices `g`, `size` memory slices, and the slots where it may start."""

    g: int
    size: int
    starts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """A MIG profile of one GPU, as nvidia-smi names it: `1g.10gb`, `1g.10gb+me`.

    `media` marks the profiles of which one GPU holds a single instance.
    """

    name: str
    shape: Shape
    media: bool

    @property
    def resource(self) -> str:
        """The extended resource under the mixed strategy; the device plugin writes `.` for `+`."""
        return f"nvidia.com/mig-{self.name.replace('+', '.')}"

    @property
    def memory_gb(self) -> int:
        """The memory in the name; what a container can use is a few percent less."""
        return int(self.name.split(".")[1].split("gb")[0])


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU model. `products` and `memory_mib` are what the labels nvidia.com/gpu.product and .memory say of it.

    `compute` is the CUDA compute capability, `nvlink` the number of GPUs in one NVLink domain (1: none), `slices` the
    compute slices that MIG can hand out (0: no MIG). `bandwidth_gbs` is the memory bandwidth of the data sheet in GB/s,
    None where it is not known. `placed` says that NVML itself gave the places of the MIG profiles. `confidence` is
    `certain` or `likely`.
    """

    name: str
    products: tuple[str, ...]
    memory_mib: int
    compute: tuple[int, int]
    architecture: str
    nvlink: int
    slices: int
    profiles: tuple[Profile, ...]
    source: str
    confidence: str
    bandwidth_gbs: int | None = None
    placed: bool = False

    def bandwidth(self, profile: str | None = None) -> float | None:
        """Bytes a second of the memory, or of a MIG slice of it, which gets them with its share of the memory slices.

        Source: NVIDIA MIG user guide, partitioning: a memory slice has an eighth of the bandwidth (a quarter on
        GPUs of four). None where the GPU's bandwidth or the profile is not known.
        """
        if self.bandwidth_gbs is None or not profile:
            return None if self.bandwidth_gbs is None else self.bandwidth_gbs * 1e9
        cut = self.profile(profile)
        whole = max((each.shape.size for each in self.profiles), default=1)
        return None if cut is None else self.bandwidth_gbs * 1e9 * cut.shape.size / whole

    @property
    def bf16(self) -> bool:
        """Whether bfloat16 runs: from compute capability 8.0 (vllm platforms/cuda.py check_if_supports_dtype)."""
        return self.compute >= (8, 0)

    @property
    def fp8(self) -> bool:
        """Whether FP8 matrix units and an FP8 key-value cache work: from 8.9 (vllm platforms/cuda.py)."""
        return self.compute >= (8, 9)

    @property
    def fp4(self) -> bool:
        """Whether FP4 matrix units work: from 10.0 (CUDA programming guide, arithmetic by compute capability)."""
        return self.compute >= (10, 0)

    def profile(self, name: str) -> Profile | None:
        """A MIG profile by nvidia-smi's name or by the device plugin's (`1g.10gb.me`)."""
        return next((p for p in self.profiles if name in (p.name, p.name.replace("+", "."))), None)

    def memory_agrees(self, mib: int) -> bool:
        """Whether a node's memory label fits this model."""
        return abs(mib - self.memory_mib) <= self.memory_mib * MEMORY_TOLERANCE


@dataclass(frozen=True, slots=True)
class Product:
    """A product label taken apart: `NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED` is a shared slice of an A100.

    `profile` is set under the single MIG strategy only; with mixed the label names the whole GPU.
    """

    gpu: Gpu
    profile: Profile | None
    shared: bool


@cache
def gpus() -> tuple[Gpu, ...]:
    """Every GPU of the table."""
    layouts = table("gpus")["layouts"]
    return tuple(_gpu(row, layouts.get(row.get("layout"))) for row in table("gpus")["gpus"])


def _gpu(row: Mapping[str, object], layout: Mapping[str, object] | None) -> Gpu:
    major, _, minor = str(row["compute"]).partition(".")
    return Gpu(
        name=str(row["name"]),
        products=tuple(_texts(row["products"])),
        memory_mib=int(str(row["memory_mib"])),
        compute=(int(major), int(minor)),
        architecture=str(row["architecture"]),
        nvlink=int(str(row["nvlink"])),
        slices=int(str(layout["slices"])) if layout else 0,
        profiles=tuple(_profiles(row, layout)) if layout else (),
        source=str(row["source"]),
        confidence=str(row["confidence"]),
        bandwidth_gbs=int(str(row["bandwidth_gbs"])) if "bandwidth_gbs" in row else None,
        placed=bool(row.get("placed")),
    )


def _texts(value: object) -> list[str]:
    return [str(v) for v in value] if isinstance(value, list) else []


def _profiles(row: Mapping[str, object], layout: Mapping[str, object]) -> Iterable[Profile]:
    shapes, names = layout["shapes"], row["mig"]
    assert isinstance(shapes, dict) and isinstance(names, dict)  # noqa: S101 - our own table
    known = {
        name: Shape(shapes[key]["g"], shapes[key]["size"], tuple(shapes[key]["starts"])) for key, name in names.items()
    }
    for name, shape in known.items():
        yield Profile(name, shape, media=False)
    for key in ("media", "plain"):
        for name in _texts(row.get(key)):
            yield Profile(name, known[_SUFFIX.sub("", name)], media=key == "media")


@cache
def gpu(name: str) -> Gpu | None:
    """A GPU by the whole-GPU product label or by the table's own name; None if unknown."""
    return next((g for g in gpus() if name in g.products or name == g.name), None)


def product(label: str) -> Product | None:
    """A product label, also of a MIG slice or a time-sliced GPU; None if the GPU or the profile is unknown.

    Source: gpu-feature-discovery adds `-MIG-<profile>` under the single strategy and `-SHARED` with time-slicing.
    """
    plain = label.removesuffix("-SHARED")
    whole, _, sliced = plain.partition("-MIG-")
    found = gpu(whole)
    if found is None or whole == found.name:
        return None
    profile = found.profile(sliced) if sliced else None
    return None if sliced and profile is None else Product(found, profile, shared=plain != label)


@dataclass(frozen=True, slots=True)
class Geometry:
    """An answer about a wish: where each instance starts, in the order of the wish; or the reason why it cannot be."""

    starts: tuple[int, ...] = ()
    problem: str = ""

    @property
    def fits(self) -> bool:
        """Whether one GPU can be cut like this."""
        return not self.problem


def geometry(of: Gpu, wish: Iterable[str]) -> Geometry:
    """Whether one GPU can hold all the MIG instances of the wish at once (`["3g.40gb", "2g.20gb", "1g.10gb"]`).

    Exact: instances may not overlap on the memory slots, and every arrangement of their few starts is tried.
    """
    names = list(wish)
    if not of.profiles:
        return Geometry(problem=f"{of.name} has no MIG")
    wanted = [of.profile(name) for name in names]
    if unknown := [name for name, profile in zip(names, wanted, strict=True) if profile is None]:
        offered = ", ".join(p.name for p in of.profiles)
        return Geometry(problem=f"{of.name} has no profile {unknown[0]}; it has {offered}")
    profiles = [profile for profile in wanted if profile is not None]
    media = [p.name for p in profiles if p.media]
    if len(media) > 1:
        return Geometry(problem=f"{' and '.join(media)}: one GPU has media engines for one instance only")
    compute = sum(p.shape.g for p in profiles)
    if compute > of.slices:
        return Geometry(problem=f"{compute} compute slices are asked, {of.name} has {of.slices}")
    order = sorted(range(len(profiles)), key=lambda i: (-profiles[i].shape.size, profiles[i].shape.starts))
    placed = _place([profiles[i].shape for i in order], taken=0)
    if placed is None:
        return Geometry(problem=f"{' + '.join(names)} cannot be placed side by side on {of.name}")
    by_wish = dict(zip(order, placed, strict=True))
    return Geometry(starts=tuple(by_wish[i] for i in range(len(profiles))))


def _place(shapes: list[Shape], taken: int) -> list[int] | None:
    """Starts for the shapes, with the slots of the bit mask `taken` in use; None if there is no arrangement."""
    if not shapes:
        return []
    first, rest = shapes[0], shapes[1:]
    for start in first.starts:
        mask = ((1 << first.size) - 1) << start
        if not taken & mask and (others := _place(rest, taken | mask)) is not None:
            return [start, *others]
    return None
