"""Which kernel of two has the launches: by times of events that tests make up."""

import pytest
import torch_clock
from twill_gpu.contest import SAMPLES, Contest, Gpu, Side, lower_bound


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
    contest = Contest(clock.gpu(lambda: False))
    assert launches(contest, clock, 2 * SAMPLES + 2, twill=3, stock=2) == [Side.TWILL, Side.STOCK] * (SAMPLES + 1)
    clock.synchronize()
    assert set(launches(contest, clock, 5, twill=3, stock=2)) == {Side.STOCK}
    assert contest.milliseconds == {Side.TWILL: 3, Side.STOCK: 2}


@pytest.mark.parametrize(("twill", "stock", "winner"), [(2, 3, Side.TWILL), (2, 1.97, Side.TWILL), (2, 1.9, Side.STOCK)])
def test_the_winner(clock, twill, stock, winner):
    contest = Contest(clock.gpu(lambda: False))
    launches(contest, clock, 2 * SAMPLES + 2, twill=twill, stock=stock)
    clock.synchronize()
    assert contest.turn() is winner


def test_the_first_launches_are_not_counted(clock):
    contest = Contest(clock.gpu(lambda: False))
    launches(contest, clock, 2, twill=1000, stock=1)
    launches(contest, clock, 2 * SAMPLES, twill=1, stock=2)
    clock.synchronize()
    assert (contest.turn(), contest.milliseconds[Side.TWILL]) == (Side.TWILL, 1)


def test_nobody_waits_for_the_gpu(clock):
    contest = Contest(clock.gpu(lambda: False))
    launches(contest, clock, 2 * SAMPLES + 2, twill=3, stock=2)
    assert set(launches(contest, clock, 3, twill=3, stock=2)) == {Side.TWILL}
    clock.synchronize()
    assert contest.turn() is Side.STOCK


def test_a_side_that_cannot_launch_has_lost(clock):
    contest = Contest(clock.gpu(lambda: False))
    launches(contest, clock, 1, twill=3)
    with pytest.raises(MemoryError):
        contest.launch(contest.turn(), clock.fail)
    contest.forfeit(Side.STOCK)
    assert set(launches(contest, clock, 20, twill=3)) == {Side.TWILL}


def test_launches_into_a_graph_are_not_timed(clock):
    capturing = [True]
    contest = Contest(clock.gpu(lambda: capturing[0]))
    assert set(launches(contest, clock, 50, twill=3)) == {Side.TWILL} and clock.events == 0
    capturing[0] = False
    launches(contest, clock, 2 * SAMPLES + 2, twill=3, stock=2)
    clock.synchronize()
    assert contest.turn() is Side.STOCK
    capturing[0] = True
    assert contest.turn() is Side.STOCK


def test_the_incumbent_stays_unless_the_other_is_faster_beyond_doubt(clock):
    for stock, winner in ((2.03, Side.STOCK), (2.1, Side.TWILL)):
        contest = Contest(clock.gpu(), Side.STOCK)
        assert launches(contest, clock, 4, twill=2, stock=stock) == [Side.STOCK, Side.TWILL] * 2
        launches(contest, clock, 2 * SAMPLES, twill=2, stock=stock)
        clock.synchronize()
        assert contest.turn() is (winner if stock > 2.04 else Side.STOCK)


def test_times_that_scatter_raise_doubt():
    assert lower_bound([1.1] * 6, [1.0] * 6) == pytest.approx(1.1)
    assert lower_bound([1.1] * 6, [0.8, 0.9, 1.0, 1.0, 1.1, 1.2]) < 1.02


def test_a_challenger_that_is_far_slower_has_two_launches(clock):
    contest = Contest(clock.gpu(), Side.STOCK)
    sides = []
    for _ in range(20):
        sides += launches(contest, clock, 1, twill=30, stock=2)
        clock.synchronize()
    assert contest.winner is Side.STOCK and sides.count(Side.TWILL) == 3


def test_trials_cost_no_more_than_their_share(clock):
    contest = Contest(clock.gpu(), Side.STOCK, share=0.01)
    usual, paid = 0, 0.0
    for _ in range(5000):
        before = clock.now
        side = launches(contest, clock, 1, twill=2.8, stock=2)[0]
        clock.synchronize()
        usual += 1
        # The first of each side, which loads, and the first that is timed are not known before they are paid.
        paid += clock.now - before - 2
        assert paid <= 0.01 * 2 * usual + 3 * 0.8 + 4 * clock.spin, side
    assert contest.winner is Side.STOCK and clock.spins > 2


def test_idle_streams_are_timed_behind_a_spin(clock):
    contest = Contest(clock.gpu())
    launches(contest, clock, 2 * SAMPLES + 2, twill=3, stock=2)
    assert clock.spins == 2 * SAMPLES


def test_a_contest_of_an_earlier_process(clock):
    contest = Contest.settled(clock.gpu(), Side.STOCK, {Side.TWILL: 3.0, Side.STOCK: 2.0})
    assert set(launches(contest, clock, 5, twill=3, stock=2)) == {Side.STOCK} and clock.events == 0
