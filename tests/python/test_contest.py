"""Which kernel of two has the launches: by times of events that tests make up."""

import pytest
import torch_clock
from twill_gpu.contest import SAMPLES, Contest, Side


@pytest.fixture
def clock():
    return torch_clock.Clock()


def launches(contest, clock, count, **milliseconds):
    """The sides of so many launches, each of which takes its side's time."""
    sides = []
    for _ in range(count):
        side = contest.turn()
        contest.launch(side, lambda side=side: clock.run(milliseconds[side.value]))
        sides.append(side)
    return sides


def test_launches_alternate_and_the_faster_has_the_rest(clock):
    contest = Contest(clock.event, lambda: False)
    assert launches(contest, clock, 2 * SAMPLES + 2, twill=3, stock=2) == [Side.TWILL, Side.STOCK] * (SAMPLES + 1)
    clock.synchronize()
    assert set(launches(contest, clock, 5, twill=3, stock=2)) == {Side.STOCK}
    assert contest.milliseconds == {Side.TWILL: 3, Side.STOCK: 2}


@pytest.mark.parametrize(("twill", "stock", "winner"), [(2, 3, Side.TWILL), (2, 1.99, Side.TWILL), (2, 1.9, Side.STOCK)])
def test_the_winner(clock, twill, stock, winner):
    contest = Contest(clock.event, lambda: False)
    launches(contest, clock, 2 * SAMPLES + 2, twill=twill, stock=stock)
    clock.synchronize()
    assert contest.turn() is winner


def test_the_first_launches_are_not_counted(clock):
    contest = Contest(clock.event, lambda: False)
    launches(contest, clock, 2, twill=1000, stock=1)
    launches(contest, clock, 2 * SAMPLES, twill=1, stock=2)
    clock.synchronize()
    assert (contest.turn(), contest.milliseconds[Side.TWILL]) == (Side.TWILL, 1)


def test_nobody_waits_for_the_gpu(clock):
    contest = Contest(clock.event, lambda: False)
    launches(contest, clock, 2 * SAMPLES + 2, twill=3, stock=2)
    assert set(launches(contest, clock, 3, twill=3, stock=2)) == {Side.TWILL}
    clock.synchronize()
    assert contest.turn() is Side.STOCK


def test_a_side_that_cannot_launch_has_lost(clock):
    contest = Contest(clock.event, lambda: False)
    launches(contest, clock, 1, twill=3)
    with pytest.raises(MemoryError):
        contest.launch(contest.turn(), clock.fail)
    contest.forfeit(Side.STOCK)
    assert set(launches(contest, clock, 20, twill=3)) == {Side.TWILL}


def test_launches_into_a_graph_are_not_timed(clock):
    capturing = [True]
    contest = Contest(clock.event, lambda: capturing[0])
    assert set(launches(contest, clock, 50, twill=3)) == {Side.TWILL} and clock.events == 0
    capturing[0] = False
    launches(contest, clock, 2 * SAMPLES + 2, twill=3, stock=2)
    clock.synchronize()
    assert contest.turn() is Side.STOCK
    capturing[0] = True
    assert contest.turn() is Side.STOCK
