"""GPUs and MIG geometries: the search against a naive one, and facts that hold by definition."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blueprint.catalog.gpus import Gpu, Profile, geometry, gpu, gpus, product

A100 = gpu("NVIDIA-A100-SXM4-80GB")
assert A100 is not None
MIG = [g for g in gpus() if g.profiles]


def naive(profiles: list[Profile]) -> bool:
    """Whether some arrangement exists, by following every set of used slots that any arrangement can lead to."""
    used: set[frozenset[int]] = {frozenset()}
    for profile in profiles:
        places = [frozenset(range(start, start + profile.shape.size)) for start in profile.shape.starts]
        used = {slots | place for slots in used for place in places if not slots & place}
    return bool(used)


@st.composite
def wishes(draw: st.DrawFn) -> tuple[Gpu, list[Profile]]:
    of = draw(st.sampled_from(MIG))
    return of, draw(st.lists(st.sampled_from(of.profiles), max_size=9))


@settings(deadline=None)
@given(wishes())
def test_the_search_agrees_with_trying_everything(wish: tuple[Gpu, list[Profile]]) -> None:
    of, profiles = wish
    answer = geometry(of, [p.name for p in profiles])
    assert answer.fits == (naive(profiles) and sum(p.media for p in profiles) <= 1)


@settings(deadline=None)
@given(wishes())
def test_a_placement_is_one(wish: tuple[Gpu, list[Profile]]) -> None:
    of, profiles = wish
    answer = geometry(of, [p.name for p in profiles])
    if answer.fits:
        assert len(answer.starts) == len(profiles)
        taken: set[int] = set()
        for profile, start in zip(profiles, answer.starts, strict=True):
            assert start in profile.shape.starts
            slots = set(range(start, start + profile.shape.size))
            assert not taken & slots
            taken |= slots
    else:
        assert answer.problem


@settings(deadline=None)
@given(wishes(), st.randoms())
def test_order_does_not_matter_and_less_always_fits(wish: tuple[Gpu, list[Profile]], random) -> None:
    of, profiles = wish
    names = [p.name for p in profiles]
    shuffled = random.sample(names, len(names))
    assert geometry(of, names).fits == geometry(of, shuffled).fits
    if names and geometry(of, names).fits:
        assert geometry(of, names[1:]).fits


@pytest.mark.parametrize(
    ("wish", "fits"),
    [
        (["1g.10gb"] * 7, True),
        (["1g.10gb"] * 8, False),
        (["1g.20gb"] * 4, True),
        (["1g.20gb"] * 5, False),
        (["2g.20gb"] * 3 + ["1g.10gb"], True),
        (["2g.20gb"] * 4, False),
        (["3g.40gb"] * 2, True),
        (["3g.40gb", "3g.40gb", "1g.10gb"], False),  # six compute slices, but all memory is taken
        (["4g.40gb", "3g.40gb"], True),
        (["4g.40gb", "2g.20gb", "1g.10gb"], True),
        (["4g.40gb", "4g.40gb"], False),
        (["7g.80gb"], True),
        (["7g.80gb", "1g.10gb"], False),
        (["1g.10gb+me", "1g.10gb"], True),
        (["1g.10gb.me", "1g.10gb+me"], False),
        ([], True),
    ],
)
def test_known_geometries(wish: list[str], fits: bool) -> None:
    assert geometry(A100, wish).fits is fits


# github.com/NVIDIA/mig-parted deployments/systemd/config-default.yaml: "all-balanced", which operators apply as it is
@pytest.mark.parametrize(
    ("label", "balanced"),
    [
        ("NVIDIA-A100-SXM4-40GB", ["1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"]),
        ("NVIDIA-A100-80GB-PCIe", ["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"]),
        ("NVIDIA-H100-80GB-HBM3", ["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"]),
        ("NVIDIA-H100-NVL", ["1g.12gb", "1g.12gb", "2g.24gb", "3g.47gb"]),
        ("NVIDIA-GH200-480GB", ["1g.12gb", "1g.12gb", "2g.24gb", "3g.48gb"]),
        ("NVIDIA-H200", ["1g.18gb", "1g.18gb", "2g.35gb", "3g.71gb"]),
        ("NVIDIA-B200", ["1g.23gb", "1g.23gb", "2g.45gb", "3g.90gb"]),
        ("NVIDIA-GB200", ["1g.23gb", "1g.23gb", "2g.47gb", "3g.93gb"]),
        ("NVIDIA-B300-SXM6-AC", ["1g.34gb", "1g.34gb", "2g.67gb", "3g.135gb"]),
        ("NVIDIA-GB300", ["1g.35gb", "1g.35gb", "2g.70gb", "3g.139gb"]),
        ("NVIDIA-A30", ["1g.6gb", "1g.6gb", "2g.12gb"]),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", ["1g.24gb", "1g.24gb", "2g.48gb"]),
    ],
)
def test_the_vendors_balanced_geometry_fits(label: str, balanced: list[str]) -> None:
    found = gpu(label)
    assert found is not None
    assert geometry(found, balanced).fits


def test_reasons_name_the_cause() -> None:
    l4 = gpu("NVIDIA-L4")
    assert l4 is not None
    assert geometry(l4, ["1g.10gb"]).problem == "L4 has no MIG"
    assert "has no profile 1g.5gb" in geometry(A100, ["1g.5gb"]).problem
    assert "8 compute slices are asked" in geometry(A100, ["1g.10gb"] * 8).problem
    assert "media engines" in geometry(A100, ["1g.10gb+me"] * 2).problem
    assert "side by side" in geometry(A100, ["3g.40gb", "3g.40gb", "1g.10gb"]).problem


def test_resources_are_those_of_the_device_plugin() -> None:
    assert {p.resource for p in A100.profiles} >= {"nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.10gb.me"}
    assert [p.memory_gb for p in A100.profiles[:3]] == [10, 20, 20]


def test_product_labels_are_taken_apart() -> None:
    whole = product("NVIDIA-H100-80GB-HBM3")
    assert whole is not None and whole.profile is None and not whole.shared
    sliced = product("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb")
    assert sliced is not None and sliced.profile is not None and sliced.profile.name == "1g.10gb"
    shared = product("NVIDIA-L4-SHARED")
    assert shared is not None and shared.shared
    assert product("NVIDIA-A100-SXM4-80GB-MIG-9g.99gb") is None
    assert product("NVIDIA-X1000") is None
    assert product("A100 80 GB SXM") is None  # our name is not a label


def test_abilities_follow_the_compute_capability() -> None:
    able = {g.name: (g.bf16, g.fp8, g.fp4) for g in gpus()}
    assert able["T4"] == (False, False, False)
    assert able["A100 80 GB SXM"] == (True, False, False)
    assert able["L4"] == able["H100 NVL"] == (True, True, False)
    assert able["B200"] == (True, True, True)


def test_memory_is_compared_with_tolerance() -> None:
    h100 = gpu("NVIDIA-H100-80GB-HBM3")
    assert h100 is not None
    assert h100.memory_agrees(81559) and h100.memory_agrees(81920)
    assert not h100.memory_agrees(95830)


def test_the_table_is_sound() -> None:
    labels = [label for g in gpus() for label in g.products]
    assert len(labels) == len(set(labels))
    for g in gpus():
        assert g.source and g.confidence in {"certain", "likely"}
        assert g.slices == max((p.shape.g for p in g.profiles), default=0)
        for p in g.profiles:
            assert p.name.startswith(f"{p.shape.g}g."), g.name
            assert geometry(g, [p.name]).fits
            assert p.memory_gb * 1000 <= g.memory_mib * 1.05
