"""A process that is killed anywhere loses nothing that was committed and repeats nothing that was.

Each case runs a graph undisturbed first, in a process of its own, and counts which crash points it passes. Then, for
each point and each time it is reached, a process is killed there, the store is read, and a new process goes on to the
end.
"""

import random
from itertools import product

import pytest

from pregel.checkpoint.points import POINTS
from tests.crash.conftest import NIGHTLY
from tests.crash.scene import Case, Scene
from tests.crash.shapes import SHAPES
from tests.crash.worker import DURABILITY, opened

BACKENDS = ["sqlite", "postgres"]
#: The sizes of the graphs: the short run's, and those of the long one.
SMALL = {"chain": 2, "fan": 2, "loop": 1, "asks": 2}
SIZES = {"chain": (2, 5), "fan": (2, 3), "loop": (1, 2), "asks": (1, 2, 3)}
#: How many places a case of the short run is killed at; with "sync" so many for each point of a commit.
FEW = 2
#: How many processes are killed from outside, for each shape on each database.
OUTSIDE = 25 if NIGHTLY else 2
#: What there must have been at the end.
ENOUGH = 1_000 if NIGHTLY else 20

CASES = [
    Case(backend, shape, size, mode)
    for backend, shape, mode in product(BACKENDS, SHAPES, DURABILITY)
    for size in (SIZES[shape] if NIGHTLY else (SMALL[shape],))
]
SMALLEST = [
    Case(backend, shape, SMALL[shape], "sync")
    for backend, shape in product(BACKENDS if NIGHTLY else BACKENDS[:1], SHAPES)
]
LARGE = [Case(backend, shape, SIZES[shape][-1], "sync") for backend, shape in product(BACKENDS, SHAPES)]


def chosen(case, counts):
    """Return the places to be killed at: all, or for the short run some that spread out, always the same ones."""
    places = [(point, number) for point in passed_by(case) for number in range(1, counts[point] + 1)]
    if NIGHTLY:
        return places
    lot = lots(case)
    if case.mode == "sync":
        return [
            (point, number)
            for point in passed_by(case)
            for number in sorted(lot.sample(range(1, counts[point] + 1), FEW if "write" in point else 1))
        ]
    return lot.sample(places, FEW)


def passed_by(case):
    """Return the points that the runs of a case pass.

    One that comes to the end of a turn lets the thread go with its last commit; one that fails or pauses, with what it
    writes at its end, or where it writes nothing then, by itself.
    """
    lets_go = {"chain": case.mode != "exit", "asks": True}.get(case.shape, False)
    return [point for point in POINTS if lets_go or not point.startswith("release")]


def lots(case):
    """Return what draws lots, the same for a case each time."""
    return random.Random(str(case))  # noqa: S311 - a choice that anyone may foresee


@pytest.fixture
def scene(case, nursery, tmp_path, request):
    if case.backend == "sqlite":
        yield Scene(case, nursery, tmp_path, tmp_path / "runs.db")
    else:
        place = request.getfixturevalue("postgres")
        with opened("postgres", place) as server:
            yield Scene(case, nursery, tmp_path, place, server)


@pytest.fixture(scope="module", autouse=True)
def enough(tally):
    """Check at the end that there were as many kills as there should be, if all cases ran."""
    yield
    if tally.cases >= {*(("at a point", case) for case in CASES), *(("from outside", case) for case in LARGE)}:
        assert tally.kills.total() >= ENOUGH


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_process_killed_at_any_point_loses_and_repeats_nothing_that_was_committed(scene, case, tally):
    counts = scene.undisturbed()
    assert counts.keys() == set(passed_by(case))
    kills = 0
    for point, occurrence in chosen(case, counts):
        with scene.about(f"killed at {point}, time {occurrence}, in {case}"):
            died = scene.killed_at(point, occurrence)
            # With "async", and of tasks that run at once, how many commits are one transaction depends on the moment.
            varies = case.mode == "async" or (scene.shape.wide and point.startswith("write"))
            assert died or varies, f"{point} was not reached {occurrence} times"
            scene.check_resume()
        kills += died
    tally.add("at a point", case, kills)


@pytest.mark.parametrize("case", SMALLEST, ids=str)
def test_processes_that_die_in_their_second_commit_get_a_run_done_between_them(scene, case, tally):
    counts = scene.undisturbed()
    with scene.about(f"killed again and again, in {case}"):
        deaths = scene.check_lives("write.inside", 2)
    # Each but the last has made one commit. Those of tasks that run at once may be one, those of supersteps never are.
    if scene.shape.wide:
        assert deaths >= len(scene.stored.checkpoints) - 1
    else:
        assert deaths == counts["write.inside"] - 1
    tally.add("again", case, deaths)


@pytest.mark.parametrize("case", LARGE, ids=str)
def test_a_process_killed_from_outside_at_any_moment_loses_and_repeats_nothing_either(scene, case, tally):
    scene.undisturbed()
    lot = lots(case)
    kills = 0
    for _ in range(OUTSIDE):
        seconds = lot.uniform(0, scene.seconds)
        with scene.about(f"killed after {seconds} s of {scene.seconds} s, in {case}"):
            kills += scene.killed_after(seconds)
            scene.check_resume()
    tally.add("from outside", case, kills)
