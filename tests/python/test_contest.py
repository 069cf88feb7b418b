"""Which of several kernels has the launches: by times of events that tests make up."""

import pytest
import torch_clock
from twill_gpu.contest import FEW, SAMPLES, STOCK, TWILL, Contest, Side, lower_bound


@pytest.fixture
def clock():
    return torch_clock.Clock()


def launches(contest, clock, count, **milliseconds):
    """The sides of so many launches, each of which takes its side's time."""
    sides = []
    for _ in range(count):
        side = contest.turn()
        contest.launch(side, lambda side=side: clock.run(milliseconds[side]))
        sides.append(side)
    return sides


def test_launches_alternate_and_the_faster_has_the_rest(clock):
    contest = Contest(clock.gpu(lambda: False))
    rounds = [launches(contest, clock, 2, twill=3, stock=2) for _ in range(SAMPLES + 1)]
    assert rounds[0] == [TWILL, STOCK] and all(sorted(each) == sorted(rounds[0]) for each in rounds)
    clock.synchronize()
    assert set(launches(contest, clock, 5, twill=3, stock=2)) == {STOCK}
    assert contest.milliseconds == {TWILL: 3, STOCK: 2}


@pytest.mark.parametrize(("twill", "stock", "winner"), [(2, 3, TWILL), (2, 1.97, TWILL), (2, 1.9, STOCK)])
def test_the_winner(clock, twill, stock, winner):
    contest = Contest(clock.gpu(lambda: False))
    launches(contest, clock, 2 * SAMPLES + 2, twill=twill, stock=stock)
    clock.synchronize()
    assert contest.turn() == winner


def test_the_first_launches_are_not_counted(clock):
    contest = Contest(clock.gpu(lambda: False))
    launches(contest, clock, 2, twill=1000, stock=1)
    launches(contest, clock, 2 * SAMPLES, twill=1, stock=2)
    clock.synchronize()
    assert (contest.turn(), contest.milliseconds[TWILL]) == (TWILL, 1)


def test_nobody_waits_for_the_gpu(clock):
    contest = Contest(clock.gpu(lambda: False))
    launches(contest, clock, 2 * SAMPLES + 2, twill=3, stock=2)
    assert set(launches(contest, clock, 3, twill=3, stock=2)) == {TWILL}
    clock.synchronize()
    assert contest.turn() == STOCK


def test_a_side_that_cannot_launch_has_lost(clock):
    contest = Contest(clock.gpu(lambda: False))
    launches(contest, clock, 1, twill=3)
    with pytest.raises(MemoryError):
        contest.launch(contest.turn(), clock.fail)
    contest.forfeit(STOCK)
    assert set(launches(contest, clock, 20, twill=3)) == {TWILL}


def test_launches_into_a_graph_are_not_timed(clock):
    capturing = [True]
    contest = Contest(clock.gpu(lambda: capturing[0]))
    assert set(launches(contest, clock, 50, twill=3)) == {TWILL} and clock.events == 0
    capturing[0] = False
    launches(contest, clock, 2 * SAMPLES + 2, twill=3, stock=2)
    clock.synchronize()
    assert contest.turn() == STOCK
    capturing[0] = True
    assert contest.turn() == STOCK


def test_the_incumbent_stays_unless_the_other_is_faster_beyond_doubt(clock):
    for stock, winner in ((2.03, STOCK), (2.1, TWILL)):
        contest = Contest(clock.gpu(), (STOCK, TWILL))
        assert launches(contest, clock, 4, twill=2, stock=stock) == [STOCK, TWILL] * 2
        launches(contest, clock, 2 * SAMPLES, twill=2, stock=stock)
        clock.synchronize()
        assert contest.turn() == (winner if stock > 2.04 else STOCK)


@pytest.mark.parametrize("period", [2, 3, 4])
def test_launches_of_different_work_by_turns_decide_nothing(clock, period):
    contest = Contest(clock.gpu(), (STOCK, TWILL))
    for number in range(200):
        work = 1 + number % period
        launches(contest, clock, 1, twill=work, stock=work)
        clock.synchronize()
    assert contest.winner == STOCK


def test_times_that_scatter_raise_doubt():
    assert lower_bound([1.1] * 6, [1.0] * 6) == pytest.approx(1.1)
    assert lower_bound([1.1] * 6, [0.8, 0.9, 1.0, 1.0, 1.1, 1.2]) < 1.02


def test_a_challenger_that_is_far_slower_has_two_launches(clock):
    contest = Contest(clock.gpu(), (STOCK, TWILL))
    sides = []
    for _ in range(20):
        sides += launches(contest, clock, 1, twill=30, stock=2)
        clock.synchronize()
    assert contest.winner == STOCK and sides.count(TWILL) == 3


FAST, SLOW, FAR = map(Side, ("fast", "slow", "far"))


def settle(contest, clock, count, **milliseconds):
    """The sides of so many launches, each of which has ended before the next."""
    sides = []
    for _ in range(count):
        sides += launches(contest, clock, 1, **milliseconds)
        clock.synchronize()
    contest.turn()
    return sides


def test_of_several_the_fastest_has_the_rest_and_those_behind_have_few_launches(clock):
    contest = Contest(clock.gpu(), (STOCK, SLOW, FAR, TWILL, FAST))
    sides = settle(contest, clock, 40, stock=2, slow=2.4, far=9, twill=1.9, fast=1.5)
    assert contest.winner == FAST and contest.milliseconds == pytest.approx({STOCK: 2, SLOW: 2.4, FAR: 9, TWILL: 1.9, FAST: 1.5})
    # The first of each is not timed.
    assert (sides.count(FAR), sides.count(SLOW), sides.count(TWILL)) == (1 + 2, 1 + FEW, 1 + FEW)


def test_the_incumbent_is_timed_even_if_it_is_behind(clock):
    contest = Contest(clock.gpu(), (STOCK, TWILL, FAST))
    settle(contest, clock, 30, stock=2, twill=1.0, fast=0.99)
    assert contest.winner == FAST and contest.milliseconds[STOCK] == 2


def test_a_challenger_that_cannot_launch_leaves_the_others(clock):
    contest = Contest(clock.gpu(), (STOCK, TWILL, FAST))
    settle(contest, clock, 30, stock=2, twill=1.0, fast=0.9)
    contest.forfeit(FAST)
    assert contest.turn() == STOCK
    contest = Contest(clock.gpu(), (STOCK, TWILL, FAST))
    launches(contest, clock, 2, stock=2, twill=1)
    contest.forfeit(FAST)
    assert set(settle(contest, clock, 30, stock=2, twill=1.0)) == {STOCK, TWILL} and contest.winner == TWILL


def test_trials_cost_no_more_than_their_share(clock):
    contest = Contest(clock.gpu(), (STOCK, TWILL), share=0.01)
    usual, paid = 0, 0.0
    for _ in range(5000):
        before = clock.now
        side = launches(contest, clock, 1, twill=2.8, stock=2)[0]
        clock.synchronize()
        usual += 1
        # The first of each side, which loads, and the first that is timed are not known before they are paid.
        paid += clock.now - before - 2
        assert paid <= 0.01 * 2 * usual + 3 * 0.8 + 4 * clock.spin, side
    assert contest.winner == STOCK and clock.spins > 2


def test_while_trials_may_cost_nothing_more_launches_are_not_looked_at(clock):
    looked = []

    class Watched(Contest):
        def turn(self):
            looked.append(self._launched)
            return super().turn()

    contest, rested = Watched(clock.gpu(), share=0.01), 0
    while contest.winner is None:
        rest = contest.rest()
        if rest:
            rested += rest
            clock.run(2.0 * rest)
        else:
            launches(contest, clock, 1, twill=1.0, stock=2)
        clock.synchronize()
    assert contest.winner == TWILL
    assert rested > 5 * len(looked) and len(looked) < 4 * (SAMPLES + 1), (rested, looked)


def test_it_is_known_when_all_sides_have_ended_well(clock):
    contest = Contest(clock.gpu())
    for _ in range(3):
        launches(contest, clock, 1, twill=3, stock=2)
        assert not contest.has_run
    launches(contest, clock, 1, twill=3, stock=2)
    clock.synchronize()
    contest.turn()
    assert contest.has_run and contest.winner is None


def test_idle_streams_are_timed_behind_a_spin(clock):
    contest = Contest(clock.gpu())
    launches(contest, clock, 2 * SAMPLES + 2, twill=3, stock=2)
    assert clock.spins == 2 * SAMPLES


def test_trials_wait_for_a_stream_at_work(clock):
    contest, count = Contest(clock.gpu(), (STOCK, TWILL), share=0.01), 0
    while contest.winner is None:
        # A step of three calls, after which somebody waits for the GPU: all but the first find it at work.
        for clock.is_idle in (True, False, False):
            launches(contest, clock, 1, twill=2, stock=3)
            count += 1
        clock.synchronize()
        assert count < 5000
    assert contest.winner == TWILL
    assert clock.spins == 0


def test_a_launch_that_the_work_ended_before_is_not_timed(clock):
    contest = Contest(clock.gpu(), (STOCK, TWILL), share=0.01)
    clock.is_idle, count, slow, seen = False, 0, 7, clock.events

    def launched(milliseconds):
        # Before it came the GPU was done, so that it waited for a while.
        nonlocal slow, seen
        if slow and clock.events > seen:
            slow -= 1
            clock.synchronize()
            clock.run(50.0)
        seen = clock.events
        clock.run(milliseconds)

    while contest.winner is None:
        side = contest.turn()
        contest.launch(side, lambda: launched(2.0 if side == TWILL else 3.0))
        count += 1
        assert count < 5000
        if count % 7 == 0:
            clock.synchronize()
    assert slow == 0 and contest.winner == TWILL and contest.milliseconds == {STOCK: 3.0, TWILL: 2.0}


def test_launches_that_are_not_timed_count_as_cost(clock):
    contest, extra, usual = Contest(clock.gpu(), (STOCK, TWILL), share=0.01), 0.0, 0.0
    clock.is_idle = False

    def launched(side):
        if side == TWILL:
            # The GPU waits for it.
            clock.synchronize()
        clock.run(20.0 if side == TWILL else 2.0)

    while contest.winner is None:
        side = contest.turn()
        contest.launch(side, lambda: launched(side))
        clock.synchronize()
        extra, usual = extra + 18.0 * (side == TWILL), usual + 2.0
        # The first two are paid before anything is known of them, and each before it is.
        assert extra <= 0.01 * usual + 4 * 18.0
    assert contest.winner == STOCK


def test_an_event_that_fails_costs_no_contest(clock):
    contest, failing, count = Contest(clock.gpu(), (STOCK, TWILL)), [4, 8], 0
    event = torch_clock.Event.query

    def query(self):
        if clock.events in failing:
            failing.remove(clock.events)
            raise RuntimeError("operation not permitted when stream is capturing")
        return event(self)

    torch_clock.Event.query = query
    try:
        while contest.winner is None:
            side = contest.turn()
            contest.launch(side, lambda: clock.run(2.0 if side == TWILL else 3.0))
            clock.synchronize()
            count += 1
            assert count < 100
    finally:
        torch_clock.Event.query = event
    assert contest.winner == TWILL and not failing


def test_where_events_always_fail_the_incumbent_has_it(clock):
    class Failing(torch_clock.Event):
        def query(self):
            raise RuntimeError("operation not permitted when stream is capturing")

    contest = Contest(clock.gpu()._replace(event=lambda: Failing(clock)), (STOCK, TWILL))
    launches(contest, clock, 100, twill=2, stock=3)
    assert contest.winner == STOCK


def test_where_the_cpu_is_always_late_its_time_counts(clock):
    contest, count = Contest(clock.gpu(), (STOCK, TWILL)), 0

    def launched(milliseconds):
        clock.synchronize()
        clock.run(milliseconds)

    while contest.winner is None:
        side = contest.turn()
        contest.launch(side, lambda: launched(2.0 if side == TWILL else 3.0))
        clock.synchronize()
        count += 1
        assert count < 100
    assert contest.winner == TWILL and clock.spins > SAMPLES


def test_trials_do_not_wait_where_the_stream_is_always_idle(clock):
    contest, count = Contest(clock.gpu(), (STOCK, TWILL), share=0.01), 0
    clock.is_idle = True
    while contest.winner is None:
        launches(contest, clock, 1, twill=2, stock=3)
        clock.synchronize()
        count += 1
        assert count < 5000
    assert contest.winner == TWILL and clock.spins >= 2 * SAMPLES


def test_a_contest_of_an_earlier_process(clock):
    contest = Contest.settled(clock.gpu(), STOCK, {TWILL: 3.0, STOCK: 2.0})
    assert set(launches(contest, clock, 5, twill=3, stock=2)) == {STOCK} and clock.events == 0
