"""Configurations of an autotuner that stock Triton's comparison did not choose, without a GPU."""

import copy
import pickle
from pathlib import Path

import gemm_tma as gemm
import pytest
import triton
from test_activation import gpu  # noqa: F401
from triton.tools.tensor_descriptor import TensorDescriptor
from twill_gpu import activation
from twill_gpu._twill import SettledCalls
from twill_gpu.activation import rounds, tuning
from twill_gpu.activation.rounds import AUTHOR
from twill_gpu.activation.tuning import Choices
from twill_gpu.activation.worker import bound_of

SIZE, K = 4096, 256
SMALL, LARGE = (64, 64, 64), (128, 128, 64)
"""Tiles: by the proven bounds the large ones are faster."""


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))


@pytest.fixture
def timed(gpu, monkeypatch):  # noqa: F811
    """A GPU on which tiles decide: stock Triton is faster with small ones, Twill with large ones."""
    gpu.times = {(SMALL, False): 3.0, (SMALL, True): 2.5, (LARGE, False): 4.0, (LARGE, True): 1.5}
    gpu.chosen = []

    class Launched(list):
        def append(self, one):
            super().append(one)
            # Twill's kernels have as many programs as there are multiprocessors: the hook knows the tile.
            gpu.chosen.append((gpu.tile, one.by_twill))
            gpu.clock.run(gpu.times[gpu.chosen[-1]])
            gpu.clock.synchronize()

    gpu.launched = Launched()
    return gpu


class Tuned:
    """An autotuned GEMM, whose hooks give descriptors their blocks as Triton's tutorials do."""

    def __init__(self, gpu, tensor, tiles=(SMALL, LARGE), heuristics=False):  # noqa: F811
        function = triton.jit(gemm.gemm_tma.fn)
        names = ("BLOCK_M", "BLOCK_N") if heuristics else ("BLOCK_M", "BLOCK_N", "BLOCK_K")

        def blocks(given):
            m, n, k = given["BLOCK_M"], given["BLOCK_N"], given.get("BLOCK_K", 64)
            gpu.tile = m, n, k
            for name, shape in (("a_desc", [m, k]), ("b_desc", [n, k]), ("c_desc", [m, n])):
                given[name].block_shape = shape

        configs = [triton.Config(dict(zip(names, tile)), num_warps=8, pre_hook=blocks) for tile in tiles]
        inner = triton.heuristics({"BLOCK_K": lambda given: 64})(function) if heuristics else function
        self.kernel = triton.autotune(configs, key=["K"])(inner)
        self.kernel._do_bench = self.measured
        self.gpu, self.tensor, self.compared = gpu, tensor, 0

    def measured(self, call, quantiles):
        begin = len(self.gpu.chosen)
        call()
        self.compared += len(self.gpu.chosen) - begin
        return [self.gpu.times[self.gpu.chosen[-1]]] * 3

    def __call__(self, count=1, k=K):
        for _ in range(count):
            self.kernel[grid](*arguments(self.tensor, k), k)


def grid(given):
    return SIZE // given["BLOCK_M"], SIZE // given["BLOCK_N"]


def arguments(tensor, k=K):  # noqa: F811
    matrices = [tensor([SIZE, k], address=at << 26) for at in (1, 2)] + [tensor([SIZE, SIZE], address=3 << 26)]
    return [TensorDescriptor.from_tensor(one, [64, 64]) for one in matrices]


def test_a_better_bound_is_tried_and_wins(timed, tensor):
    activation.install("wait")
    tuned = Tuned(timed, tensor)
    tuned(60)
    assert tuned.compared == 2 and len(timed.chosen) == 62, "each call is launched once"
    assert timed.chosen[2] == (SMALL, False) and timed.chosen[-1] == (LARGE, True)
    assert (LARGE, False) not in timed.chosen[2:], "stock Triton found that slower"
    speeds = {round(one.speed, 3): (one.wins, one.grids) for one in activation.status()}
    assert speeds == {1.2: (1, 1), 2.0: (1, 1)}, "both by the time of what stock Triton chose"


def test_the_next_process_begins_with_it(timed, tensor):
    for _ in range(2):
        timed.chosen.clear()
        activation.install("wait")
        Tuned(timed, tensor)(60)
        activation.uninstall()
    # Its first launch is stock Triton's, as that of any specialisation.
    assert timed.chosen[2:] == [(LARGE, False)] + [(LARGE, True)] * 59


def test_what_is_not_faster_is_not_taken(timed, tensor):
    timed.times[LARGE, True] = 2.47
    for _ in range(2):
        timed.chosen.clear()
        activation.install("wait")
        Tuned(timed, tensor)(60)
        activation.uninstall()
        assert timed.chosen[-1] == (SMALL, True)
    assert {tile for tile, _ in timed.chosen[2:]} == {SMALL}, "that is known"


def test_no_better_bound_is_no_try(timed, tensor, monkeypatch):
    monkeypatch.setattr(rounds, "rate", lambda seen, bound: bound)
    activation.install("wait")
    tuned = Tuned(timed, tensor)
    tuned(40)
    bounds = tuned.kernel.cache.tuning.round_of(*key_of(tuned))._bounds.result()["bounds"]
    assert bounds[0] < bounds[1] and {tile for tile, _ in timed.chosen[2:]} == {SMALL, LARGE}
    activation.uninstall()
    timed.chosen.clear()
    monkeypatch.setattr(rounds, "rate", lambda seen, bound: 1.0)
    monkeypatch.setattr(rounds.Round, "_recall", lambda self: None)
    activation.install("wait")
    Tuned(timed, tensor)(40)
    assert {tile for tile, _ in timed.chosen[2:]} == {SMALL}


def test_who_chooses_anew_is_obeyed(timed, tensor):
    activation.install("wait")
    tuned = Tuned(timed, tensor)
    tuned(60)
    assert timed.chosen[-1] == (LARGE, True)
    (key,) = tuned.kernel.cache
    small, large = tuned.kernel.configs
    timed.times[LARGE, True] = 9.0
    tuned.kernel.cache[key] = large
    tuned(1)
    assert timed.chosen[-1][0] == LARGE, "it was chosen"
    tuned.kernel.cache[key] = small
    tuned(1)
    assert timed.chosen[-1][0] == LARGE, "that is settled"


def test_profilers_are_told_of_the_choice(timed, tensor, monkeypatch):
    activation.install("wait")
    tuned = Tuned(timed, tensor)
    tuned(60)
    assert timed.chosen[-1] == (LARGE, True)
    monkeypatch.setattr(triton.knobs.runtime, "launch_enter_hook", lambda *_: None)
    tuned(1)
    assert timed.chosen[-1] == (SMALL, False)


def key_of(tuned):
    (key, likeness) = next(iter(tuned.kernel.cache.tuning._rounds))
    return key, tuned.kernel.configs[0], likeness


def test_heuristics_are_those_of_the_configuration(timed, tensor):
    activation.install("wait")
    Tuned(timed, tensor, heuristics=True)(60)
    assert timed.chosen[-1] == (LARGE, True)


def test_calls_of_other_sizes_have_a_round_of_their_own(timed, tensor):
    activation.install("wait")
    tuned = Tuned(timed, tensor)
    tuned(60)
    timed.times[LARGE, True] = 9.0
    tuned(60, 4 * K)
    assert timed.chosen[-1] == (SMALL, True)
    tuned(1)
    assert timed.chosen[-1] == (LARGE, True)


def test_a_kernel_that_refuses_leaves_the_calls_to_the_choice(timed, tensor):
    activation.install("wait")
    tuned = Tuned(timed, tensor)
    tuned(60)
    (known,) = tuned.kernel.cache.tuning._rounds.values()
    known.settled()[0].found.refuse("as a test wants it")
    tuned(4)
    assert timed.chosen[-4] == (LARGE, False) and timed.chosen[-3:] == [(SMALL, True)] * 3


def test_calls_that_are_settled_are_not_looked_at(timed, tensor, monkeypatch):
    activation.install("wait")
    tuned = Tuned(timed, tensor)
    tuned(60)
    monkeypatch.setattr(tuning, "Call", None)
    tuned(36)
    assert timed.chosen[-36:] == [(LARGE, True)] * 36
    with pytest.raises(TypeError):
        # Another number that the autotuner looks at, of as many bits.
        tuned(1, k=K + 64)


def both_keys(timed, tensor):
    """An autotuner of two keys: of K another configuration has all calls, of 4 K stock Triton's choice."""
    tuned = Tuned(timed, tensor)
    tuned(60)
    assert timed.chosen[-1] == (LARGE, True)
    timed.times[LARGE, True] = 9.0
    tuned(60, k=4 * K)
    assert timed.chosen[-1] == (SMALL, True)
    timed.times[LARGE, True] = 1.5
    tuned(32)
    return tuned


def test_a_pause_is_stock_tritons(timed, tensor):
    activation.install("wait")
    tuned = both_keys(timed, tensor)
    small, _ = tuned.kernel.configs
    assert timed.chosen[-1] == (LARGE, True)
    assert list(tuned.kernel.cache.values()) == [small, small], "what stock Triton chose"
    activity = activation._activity
    for enter in (True, False):
        activity.is_paused = enter
        for _ in range(20):
            tuned(1, k=4 * K)
            tuned(1)
        assert set(timed.chosen[-1:-40:-2]) == {(SMALL, False) if enter else (LARGE, True)}
    with activity.suspended():
        tuned(20)
        assert set(timed.chosen[-20:]) == {(SMALL, False)}
    activation.uninstall()
    tuned(1)
    assert timed.chosen[-1] == (SMALL, False)


def test_a_configuration_that_is_chosen_anew_stays(timed, tensor):
    activation.install("wait")
    tuned = both_keys(timed, tensor)
    small = tuned.kernel.configs[0]
    (key, _) = tuned.kernel.cache
    # Another one: of an equal one it would be on record who has won.
    pinned = triton.Config(small.kwargs, num_warps=4, pre_hook=small.pre_hook)
    tuned.kernel.cache[key] = pinned
    tuned(32, k=4 * K)
    tuned(1)
    assert tuned.kernel.cache[key] is pinned and timed.chosen[-1][0] == SMALL


CHANGES = {
    "clear": ((), 2),
    "pop": (("key",), 2),
    "popitem": ((), 2),
    "__delitem__": (("key",), 2),
    "update": (({},), 1),
    "__ior__": (({},), 1),
    "setdefault": (("key", None), 1),
}
"""Methods of dictionaries: their arguments, and how often all configurations are compared with the call before."""


@pytest.mark.parametrize("change", CHANGES)
def test_a_cache_that_somebody_changes_is_looked_at(timed, tensor, change):
    activation.install("wait")
    tuned = Tuned(timed, tensor)
    tuned(60)
    (key,), compared, settled = tuned.kernel.cache, tuned.compared, tuned.kernel.cache.tuning.settled
    given, times = CHANGES[change]
    generation = settled.generation
    getattr(tuned.kernel.cache, change)(*(key if one == "key" else one for one in given))
    assert settled.generation > generation
    tuned(20)
    assert tuned.compared == times * compared and timed.chosen[-1] == (LARGE, True)


def test_settled_calls_do_what_the_autotuner_does(timed, tensor):
    """With a configuration: its hook has all arguments, and it is the autotuner's best."""
    activation.install("wait")
    tuned = Tuned(timed, tensor)
    tuned(60)
    _, large = tuned.kernel.configs
    seen, hook = [], large.pre_hook

    def hooked(given):
        seen.append((dict(given), dict(tuned.kernel.nargs), tuned.kernel.best_config))
        hook(given)

    large.pre_hook, tuned.kernel.best_config = hooked, None
    owns = []

    def looking(given):
        owns.append(tuned.kernel.nargs)
        return grid(given)

    kernels = [tuned.kernel[looking](*arguments(tensor), K) for _ in range(2)]
    assert kernels[0] is kernels[1] and kernels[0].metadata.num_warps == 8
    (given, own, best), _ = seen
    assert best is large and tuned.kernel.nargs is None
    assert list(own) == list(owns[0]) == ["a_desc", "b_desc", "c_desc", "K"]
    assert {name: given[name] for name in ("K", "BLOCK_M", "num_warps", "warmup")} == {"K": K, "BLOCK_M": 128, "num_warps": 8, "warmup": False}
    with pytest.raises(TypeError, match="num_warps"):
        tuned.kernel[grid](*arguments(tensor), K, num_warps=4)
    # Somebody changes the configuration.
    large.num_warps = 4
    assert tuned.kernel[grid](*arguments(tensor), K).metadata.num_warps == 4
    assert tuned.kernel.run == tuned.kernel.run and len({tuned.kernel.run, tuned.kernel.run}) == 1


def test_a_kernel_that_is_refused_in_a_settled_call_has_no_more(timed, tensor):
    """By another thread, say, while the configuration's hook runs."""
    activation.install("wait")
    tuned = Tuned(timed, tensor)
    tuned(60)
    (known,) = tuned.kernel.cache.tuning._rounds.values()
    tuned.kernel.cache.tuning.settled.forget()
    tuned(1)
    taken, large = known.settled()[0], tuned.kernel.configs[1]
    hook = large.pre_hook

    def refusing(given):
        hook(given)
        taken.found.refuse("as a test wants it")

    large.pre_hook = refusing
    tuned(1)
    large.pre_hook = hook
    tuned(6)
    assert set(timed.chosen[-5:]) == {(SMALL, True)}


def test_others_may_look_at_the_cache(timed, tensor):
    activation.install("wait")
    tuned = both_keys(timed, tensor)
    assert timed.chosen[-1] == (LARGE, True)

    def looking(given):
        assert [tuned.kernel.cache[key] for key in reversed(tuned.kernel.cache)]
        return grid(given)

    for k, expected in ((K, LARGE), (4 * K, SMALL)):
        tuned.kernel.cache.tuning.settled.forget()
        for _ in range(4):
            tuned.kernel[looking](*arguments(tensor, k), k)
        assert {tile for tile, _ in timed.chosen[-3:]} == {expected}


def test_other_keys_are_other_calls(timed, tensor):
    activation.install("wait")
    tuned = Tuned(timed, tensor)
    tuned(60)
    compared, keys = tuned.compared, tuned.kernel.keys
    tuned.kernel.keys = []
    tuned(1)
    assert tuned.compared > compared, "as stock Triton's key is another one"
    tuned.kernel.keys = keys
    other = copy.copy(tuned.kernel)
    other.keys = [*keys, "a_desc"]
    with pytest.raises(TypeError, match="unhashable|hashable"):
        other[grid](*arguments(tensor), K)


def test_a_dictionary_of_somebodys_own_is_the_autotuners(timed, tensor):
    activation.install("wait")
    tuned = Tuned(timed, tensor)
    tuned(60)
    small, _ = tuned.kernel.configs
    (key,) = tuned.kernel.cache
    tuned.kernel.cache = {key: small}
    tuned(1)
    assert timed.chosen[-1] == (SMALL, True)


def test_a_choice_that_is_settled_is_not_looked_at(timed, tensor, monkeypatch):
    timed.times[LARGE, True] = 2.47
    activation.install("wait")
    tuned = Tuned(timed, tensor)
    tuned(60)
    monkeypatch.setattr(tuning, "Call", None)
    tuned(4)
    assert timed.chosen[-4:] == [(SMALL, True)] * 4
    tuned.kernel.cache.clear()
    with pytest.raises(TypeError):
        tuned(2)


def test_a_key_that_comes_later_has_its_turn(timed, tensor):
    timed.times[LARGE, True] = 2.47
    activation.install("wait")
    tuned = Tuned(timed, tensor)
    tuned(60)
    assert timed.chosen[-1] == (SMALL, True)
    timed.times[LARGE, True] = 1.5
    tuned(80, k=K + 64)
    assert timed.chosen[-1] == (LARGE, True)


def test_a_choice_that_somebody_writes_into_the_cache_counts(timed, tensor):
    activation.install("wait")
    tuned = Tuned(timed, tensor)
    tuned(60)
    assert timed.chosen[-1] == (LARGE, True)
    small = next(one for one in tuned.kernel.configs if one.kwargs["BLOCK_M"] == SMALL[0])
    (key,) = tuned.kernel.cache
    tuned.kernel.cache.update({key: triton.Config(small.kwargs, num_warps=4, pre_hook=small.pre_hook)})
    tuned(1)
    assert timed.chosen[-1][0] == SMALL, "this call is that one's; later ones are looked at anew"


def test_a_graph_takes_what_warmed_it_up(timed, tensor):
    activation.install("wait")
    tuned = Tuned(timed, tensor)
    tuned(60)
    tuned(40, k=K + 64)
    timed.capturing = True
    tuned(1, k=K + 64)
    assert timed.chosen[-1] == (LARGE, True)


def test_calls_that_are_alike():
    calls = SettledCalls([("x", False), ("k", True), ("m", False), ("BLOCK", True)], 0)
    half, full = Array("float16"), Array("float32")
    args = half, 64, 4096, 128
    calls.settle(args, {"warmup": False, "grid": (32, 1)}, True)

    def known(*args, **named):
        return calls.look(args, {"warmup": False, "grid": (32, 1), **named})

    assert known(*args) and known(Array("float16"), 64, 5008, 128), "as many bits"
    assert not known(half, 64, 5000, 128), "no multiple of 16"
    assert known(*args, grid=(48, 1)) and not known(*args, grid=(64, 1))
    assert not known(full, 64, 4096, 128) and not known(half, 65, 4096, 128) and not known(half, 64, 8192, 128)
    assert not known(*args, num_warps=4) and not known(*args, warmup=True) and not known(half, 64, 1 << 70, 128)
    calls.settle((half, 64, 16 * 123456789, 128), {}, True)
    assert calls.look((half, 64, 16 * 2345678, 128), {}) and not calls.look((half, 64, 16 * 345678, 128), {}), "seeds"
    assert [tuning._size(1 << bits) for bits in (30, 24, 23, 22)] == [24, 24, 24, 23]
    calls.settle(args, {}, "twice", 2)
    assert [calls.look(args, {}) for _ in range(4)] == ["twice", "twice", None, None]
    calls.settle(args, {"grid": lambda given: (1,)}, True)
    assert calls.look(args, {"grid": len}), "who knows what that is"
    calls.forget()
    assert not known(*args)
    # Numbers of numpy's have a type of elements, and are no memory.
    calls.settle((half, 64, Number(), 128), {}, True)
    assert calls.look((half, 64, Number(), 128), {}) and not calls.look((half, Number(), 4096, 128), {})
    calls.settle((half, Number(), 4096, 128), {}, True)
    assert not calls.look((half, Number(), 4096, 128), {}), "what a constant is has to be known"
    calls.settle((half, -1.0, 0.25, 128), {}, True)
    assert calls.look((half, -1.0, 0.5, 128), {}) and not calls.look((half, -2.0, 0.5, 128), {})


class Array:
    """A tensor, as far as its type tells it apart."""

    types = {}

    def __init__(self, dtype):
        self.dtype = self.types.setdefault(dtype, object())

    def data_ptr(self):
        return 0


class Number:
    """A number of numpy's."""

    dtype = object()


def test_graphs_take_what_was_launched_before(timed, tensor):
    activation.install("wait")
    Tuned(timed, tensor)(60)
    activation.uninstall()
    activation.install("1")
    tuned = Tuned(timed, tensor)
    tuned(1)
    timed.capturing = True
    tuned(1)
    assert timed.chosen[-1][0] == SMALL, "Twill's kernel of large tiles was not loaded yet"
    timed.capturing = False
    tuned(2)
    timed.capturing = True
    tuned(1)
    assert timed.chosen[-1] == (LARGE, True)


def test_frozen_processes_try_nothing(timed, tensor):
    activation.install("frozen")
    Tuned(timed, tensor)(30)
    assert {tile for tile, _ in timed.chosen[2:]} == {SMALL}


def test_afterwards_all_is_as_it_was(timed, tensor):
    activation.install("wait")
    tuned = Tuned(timed, tensor)
    tuned(3)
    assert type(tuned.kernel.cache) is Choices
    twin = copy.copy(tuned.kernel)
    assert pickle.loads(pickle.dumps(tuned.kernel.cache.tuning)) is None
    assert type(copy.copy(tuned.kernel.cache)) is dict and type(copy.deepcopy(twin.cache)) is dict
    activation.uninstall()
    assert type(tuned.kernel.cache) is dict and len(tuned.kernel.cache) == 1
    assert not [name for name in vars(tuned.kernel) if name.startswith("_twill")]
    timed.chosen.clear()
    tuned(2)
    assert timed.chosen == [(SMALL, False)] * 2


def test_configurations_of_the_same_tiles_cost_nothing(timed, tensor):
    activation.install("wait")
    tuned = Tuned(timed, tensor, (SMALL, SMALL))
    tuned(3)
    assert type(tuned.kernel.cache) is dict


def test_a_bound_is_that_of_all_loops():
    text = Path(gemm.__file__).with_suffix(".ttir").read_text()
    assert bound_of(text, "gemm_tma", "h200") > 100
    assert bound_of("module {}", "nothing", "h200") is None
    assert rounds.products(text) == 128 * 128 * 64


def test_arguments_that_cannot_be_compared_leave_the_choice(timed, tensor):
    """What cannot be hashed is no reason for an application to fail."""
    activation.install("wait")
    tuned = Tuned(timed, tensor)
    tuned(60)
    call = tuning.Call(tuned.kernel.cache.tuning, ([1, 2], None, None, K), {"warmup": False})
    (key,) = tuned.kernel.cache
    assert call.choose(key, tuned.kernel.configs[0]) is tuned.kernel.configs[0] and call.is_over
