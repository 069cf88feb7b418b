"""Keywords that are misspelt, and values that an option cannot have."""

import sys
import types

import pytest
import twill_gpu
from twill_gpu import _twill, options

MISSPELT = {
    "schedule": (lambda: twill_gpu.schedule("gemm", sub_tile=2), "schedule.. got an unexpected keyword argument 'sub_tile'; did you mean 'sub_tiles'?"),
    "schedule's own": (lambda: twill_gpu.schedule("gemm", machin="h200"), "'machin'; did you mean 'machine'?"),
    "alternatives": (lambda: twill_gpu.alternatives("gemm", 2, compute_group=1), "alternatives.. got .* 'compute_group'; did you mean 'compute_groups'?"),
    "fit": (lambda: twill_gpu.fit("gemm.ttir", ring_dept=3), "fit.. got .* 'ring_dept'; did you mean 'ring_depth'?"),
    "sweep": (lambda: twill_gpu.sweep("gemm.ttir", mesure=1), "sweep.. got .* 'mesure'; did you mean 'measure'?"),
    "sweep's options": (lambda: twill_gpu.sweep("gemm.ttir", sub_tiles=1), r"'sub_tiles'; did you mean options=\{'sub_tiles': …\}\?"),
    "gaus": (lambda: twill_gpu.gaus("gemm", objectiv="latency"), "gaus.. got .* 'objectiv'; did you mean 'objective'?"),
    "jit": (lambda: twill_gpu.jit(on_failur="error"), "jit.. got .* 'on_failur'; did you mean 'on_failure'?"),
    "jit, Triton's": (lambda: twill_gpu.jit(do_not_specialise=["x"]), "did you mean 'do_not_specialize'?"),
    "jit, an option": (lambda: twill_gpu.jit(persistent=False), r"did you mean options=\{'persistent': …\}\?"),
    "jit's options": (lambda: twill_gpu.jit(options={"persistant": False}), "there is no option 'persistant'; did you mean 'persistent'?"),
}

WRONG = {
    "persistent": ("maybe", "persistent must be 'on', 'off', True or False, not 'maybe'"),
    "no_cache": ("never", "no_cache must be 'on', 'off', True or False, not 'never'"),
    "emit": ("ptx", "emit must be 'gluon' or 'cuda', not 'ptx'"),
    "compute_groups": (17, "compute_groups must be from 1 to 16, not 17"),
    "sub_tiles": (0, "sub_tiles must be at least 1, not 0"),
    "ring_depth": (True, "ring_depth must be a whole number, not True"),
    "time_limit": (-1, "time_limit must be above 0 and at most 1e9, or none, not -1"),
    "trip_counts": ([4, "x"], r"each of trip_counts must be a whole number, not \[4, 'x'\]"),
}


@pytest.mark.parametrize("call", MISSPELT)
def test_what_was_meant(call):
    ask, said = MISSPELT[call]
    with pytest.raises(TypeError, match=said) as raised:
        ask()
    assert isinstance(raised.value, twill_gpu.TwillError)


def test_what_was_meant_of_torch(monkeypatch):
    def custom_op(name, fn=None, /, *, mutates_args, device_types=None): ...

    library = types.SimpleNamespace(custom_op=custom_op)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(library=library))
    for wrong, meant in (("mutate_args", "mutates_args"), ("device_type", "device_types")):
        with pytest.raises(TypeError, match=f"custom_op.. got .* '{wrong}'; did you mean '{meant}'?"):
            twill_gpu.custom_op("a::b", **{wrong: ()})


def test_nothing_is_suggested_for_what_is_like_nothing():
    with pytest.raises(TypeError, match="unexpected keyword argument 'zzz'$"):
        twill_gpu.schedule("gemm", zzz=1)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value(name):
    value, said = WRONG[name]
    calls = (
        lambda: twill_gpu.schedule("gemm", **{name: value}),
        lambda: twill_gpu.alternatives("gemm", 2, **{name: value}),
        lambda: twill_gpu.fit("module {}\n", **{name: value}),
        lambda: twill_gpu.sweep("module {}\n", options={name: value}, progress=False),
        lambda: twill_gpu.jit(options={name: value}),
    )
    for call in calls:
        with pytest.raises(twill_gpu.InputError, match=said):
            call()


def test_wrong_values_elsewhere():
    with pytest.raises(ValueError, match="objective must be 'resources', 'storage' or 'latency', not 'beauty'"):
        twill_gpu.gaus(None, random="nodes=10", objective="beauty")
    with pytest.raises(ValueError, match="on_failure must be 'stock' or 'error', not 'ignore'"):
        twill_gpu.jit(on_failure="ignore")
    with pytest.raises(ValueError, match="sub_tiles cannot be used with cta_coarsening|cta_coarsening cannot be used with sub_tiles"):
        twill_gpu.schedule("gemm", sub_tiles=2, cta_coarsening=2)
    with pytest.raises(ValueError, match="h200 has no number 'latency.transfr'; did you mean 'latency.transfer'?"):
        twill_gpu.Machine("h200").with_numbers("other", {"latency.transfr": 1})


def test_options_are_those_of_the_command(capfd):
    """As `--help-all` lists them, whatever they are."""
    for command in ("compile", "gaus"):
        _twill.run_command(["twill", command, "--help-all"])
        listed = capfd.readouterr().out
        names = options.known(command)
        assert [name for name in names if f"--{name.replace('_', '-')}" not in listed] == []
        assert {"no_cache", "time_limit"} & set(names) and not {"output", "help"} & set(names)


def test_each_way_to_say_yes_and_no():
    given = {"persistent": True, "mma_batches": "off", "no_cache": True, "wave_sync": "on", "trace": 8}
    assert options.checked({**given, "sub_tiles": None}) == given
    for value in (True, False, "on", "off"):
        options.checked({"no_cache": value, "persistent": value, "trace": value})
    assert options.is_on({"no_assemble": "on"}, "no_assemble") and not options.is_on({"no_assemble": False}, "no_assemble")


def test_what_goes_together():
    for given, said in (
        ({"trace_detail": "segments"}, "trace is needed as well"),
        ({"candidates": 2, "no_assemble": True}, "candidates cannot be used with no_assemble"),
        ({"coarsening_axis": "y"}, "cta_coarsening is needed as well"),
    ):
        with pytest.raises(twill_gpu.InputError, match=said):
            options.checked(given)
    with pytest.raises(twill_gpu.InputError, match="random is needed as well"):
        twill_gpu.gaus(None)
    with pytest.raises(twill_gpu.InputError, match="smallest_ii cannot be used with ii"):
        twill_gpu.gaus("gemm", smallest_ii=True, ii=3)


def test_options_as_text():
    """As a sweep's `--set` gives them."""
    options.checked({"trip_counts": "4,8", "ring_depth": "3", "time_limit": "none", "cluster": "2"})
    with pytest.raises(twill_gpu.InputError, match="ring_depth must be from 1 to 8, not '9'"):
        options.checked({"ring_depth": "9"})
