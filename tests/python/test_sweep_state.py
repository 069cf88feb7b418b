"""The journal of a sweep, and recovery after a death in the middle."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import attention_forward as attention
import gemm_tma as gemm
import pytest
import twill_gpu
from sweeps import ALONE, ATTENTION, EXAMPLES, GEMM, HEADS, TILES, keys_of, plain
from twill_gpu.sweeping import jobs
from twill_gpu.sweeping.journal import Journal


@pytest.fixture
def counted(monkeypatch):
    """How often each job was done, by step and key."""
    done, really = {}, jobs.run

    def run(step, question, progress=None):
        key = step, jobs.key(step, question)
        done[key] = done.get(key, 0) + 1
        return really(step, question, progress)

    monkeypatch.setattr(jobs, "run", run)
    return done


class TestResumed:
    def test_nothing_is_done_twice(self, tmp_path, counted):
        state = tmp_path / "sweep.jsonl"
        first = twill_gpu.sweep(gemm.gemm_tma, TILES, solve=2, state=state, **ALONE)
        assert set(counted.values()) == {1}
        before = dict(counted)
        again = twill_gpu.sweep(gemm.gemm_tma, TILES, solve=2, state=state, **ALONE)
        assert counted == before and plain(again) == plain(first)
        more = twill_gpu.sweep(gemm.gemm_tma, TILES, solve=4, state=state, **ALONE)
        assert set(counted.values()) == {1} and len(counted) > len(before)
        assert sum(row.ii is not None for row in more.rows) >= 4
        assert sorted(keys_of(state)) == sorted(key for _, key in counted)

    def test_other_questions_are_others(self, tmp_path, counted):
        state = tmp_path / "sweep.jsonl"
        ask = lambda **more: twill_gpu.sweep(EXAMPLES / "gemm_tma.ttir", state=state, progress=False, **more)
        ask(machine="h200"), ask(machine="h100"), ask(machine="h200", time_limit=7), ask(machine="h200")
        assert sorted(step for step, _ in counted) == ["fit", "fit", "solve", "solve", "solve"]

    @pytest.mark.parametrize("cut", [1, 7, 40])
    def test_a_torn_line_is_cut_off(self, tmp_path, counted, cut):
        state = tmp_path / "sweep.jsonl"
        first = twill_gpu.sweep(gemm.gemm_tma, TILES, solve=2, state=state, **ALONE)
        whole = state.read_bytes()
        state.write_bytes(whole[:-cut])
        counted.clear()
        assert plain(twill_gpu.sweep(gemm.gemm_tma, TILES, solve=2, state=state, **ALONE)) == plain(first)
        assert list(counted.values()) == [1]
        assert len(keys_of(state)) == len(set(keys_of(state))) == len(whole.splitlines()) - 1

    def test_a_torn_header(self, tmp_path):
        state = tmp_path / "sweep.jsonl"
        state.write_bytes(b'{"format": "twill-sw')
        Journal(state).close()
        assert keys_of(state) == []

    @pytest.mark.parametrize("text", ["precious\n", "precious", '{"format": "twill-sweep-journal", "version": 2}\n'])
    def test_a_file_that_is_no_journal_is_left_alone(self, tmp_path, text):
        state = tmp_path / "thesis.txt"
        state.write_text(text)
        with pytest.raises(twill_gpu.InputError, match="no journal of a sweep"):
            Journal(state)
        assert state.read_text() == text

    def test_a_line_in_the_middle_that_cannot_be_read(self, tmp_path):
        state = tmp_path / "sweep.jsonl"
        twill_gpu.sweep(gemm.gemm_tma, TILES, solve=1, state=state, **GEMM)
        lines = state.read_text().splitlines(keepends=True)
        state.write_text("".join([*lines[:2], "{torn\n", *lines[3:]]))
        with pytest.raises(twill_gpu.InputError, match="line 3"):
            Journal(state)

    def test_two_at_once(self, tmp_path):
        journal = Journal(tmp_path / "sweep.jsonl")
        with pytest.raises(twill_gpu.InputError, match="in use"):
            Journal(tmp_path / "sweep.jsonl")
        journal.close()
        Journal(tmp_path / "sweep.jsonl").close()

    def test_what_failed_is_tried_again(self, tmp_path, monkeypatch):
        state, really = tmp_path / "sweep.jsonl", jobs.run

        def broken(step, question, progress=None):
            if step == jobs.SOLVE:
                raise RuntimeError("the machine is on fire")
            return really(step, question, progress)

        monkeypatch.setattr(jobs, "run", broken)
        ask = lambda: twill_gpu.sweep(EXAMPLES / "gemm_tma.ttir", state=state, machine="h200", progress=False)
        (row,) = ask().rows
        assert row.ii is None and "on fire" in row.reason
        monkeypatch.setattr(jobs, "run", really)
        assert ask().rows[0].ii == 512


class TestInterrupted:
    def test_what_is_there_is_given_back(self, tmp_path, counted):
        def press(text):
            if text.startswith("schedules: 1 solved"):
                raise KeyboardInterrupt

        state = tmp_path / "sweep.jsonl"
        given = {**GEMM, "progress": press, "workers": 1, "solve": 4, "state": state}
        found = twill_gpu.sweep(gemm.gemm_tma, TILES, **given)
        assert found.interrupted and not found.certain
        assert sum(row.ii is not None for row in found.rows) == 1 and "Interrupted" in found.table()
        whole = twill_gpu.sweep(gemm.gemm_tma, TILES, **{**given, "progress": False})
        assert not whole.interrupted and whole.certain
        # The one that was under way was not done.
        assert len(keys_of(state)) == len(set(keys_of(state)))
        assert sum(counted.values()) <= len(counted) + 1

    def test_in_the_midst_of_bounds(self, tmp_path):
        def press(text):
            if text.startswith("bounds: 3 "):
                raise KeyboardInterrupt

        found = twill_gpu.sweep(gemm.gemm_tma, TILES, **{**GEMM, "progress": press, "state": tmp_path / "state"})
        assert found.interrupted and found.best is None
        assert sum(row.fits is None and row.status == "failed" for row in found.rows) == 18 - len(
            keys_of(tmp_path / "state")
        )

    def test_ctrl_c_in_the_command(self, tmp_path):
        state, output = tmp_path / "state", tmp_path / "sweep.json"
        # Its two loops together take far longer than this test waits.
        words = [EXAMPLES / "attention_forward_causal_d64.ttir", EXAMPLES / "gemm_tma.ttir", "--machine=h200", "--workers=2"]
        words += [f"--state={state}", "--format=json", "-o", output, "--time-limit=500"]
        environment = {**os.environ, "TWILL_CACHE": "off"}
        process = subprocess.Popen([sys.executable, "-m", "twill_gpu.sweeping", *words], env=environment)
        end = time.monotonic() + 60
        while time.monotonic() < end and not (state.exists() and len(state.read_text().splitlines()) >= 4):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 3
        found = json.loads(output.read_text())
        assert found["interrupted"] and not found["certain"]
        by_input = {Path(row["configuration"]["input"]).stem: row for row in found["rows"]}
        assert by_input["gemm_tma"]["ii"] == 512 and "ii" not in by_input["attention_forward_causal_d64"]


class TestWorkers:
    def test_any_number_finds_the_same(self, monkeypatch):
        monkeypatch.setenv("TWILL_CACHE", "off")
        ask = lambda workers: plain(
            twill_gpu.sweep(attention.attention_forward, HEADS, solve=2, workers=workers, **ATTENTION)
        )
        one = ask(1)
        assert ask(3) == one and ask(16) == one

    def test_they_work_at_the_same_time(self, monkeypatch):
        meet = threading.Barrier(3, timeout=30)
        monkeypatch.setattr(
            jobs,
            "run",
            lambda step, question, progress: (
                meet.wait() and {"fits": False, "reason": "met"} or {"fits": False, "reason": "met"}
            ),
        )
        found = twill_gpu.sweep(EXAMPLES / "gemm_tma.ttir", {"sub_tiles": [1, 2, None]}, workers=3, progress=False)
        assert [row.reason for row in found.rows] == ["met"] * 3

    def test_ray_is_named_where_it_is_missing(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "ray", None)
        with pytest.raises(twill_gpu.InputError, match=r"pip install 'twill-gpu\[ray\]'"):
            twill_gpu.sweep(EXAMPLES / "gemm_tma.ttir", ray="local", progress=False)

    def test_ray_is_not_imported_unless_it_is_asked_for(self):
        program = (
            f"import sys, twill_gpu; twill_gpu.sweep({str(EXAMPLES / 'gemm_tma.ttir')!r}, progress=False); "
            "print({'ray', 'torch', 'triton'} & set(sys.modules))"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout == "set()\n"


SLOW = """
import os, time
from twill_gpu.sweeping import jobs

really, log = jobs.run, os.environ["SWEEP_LOG"]

def run(step, question, progress=None):
    import ray

    def tell(what):
        with open(log, "a") as file:
            node = ray.get_runtime_context().get_node_id()
            file.write(f"{what} {node} {jobs.key(step, question)} {os.getpid()}\\n")

    tell("begins")
    time.sleep(0.05)
    while os.path.exists(log + ".hold"):
        time.sleep(0.05)
    outcome = really(step, question, progress)
    tell("ends")
    return outcome

jobs.run = run
"""
"""The setup of workers: jobs say where they are, and wait while they are held."""


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    """A Ray cluster of two workers and a head that takes no jobs, and what the workers tell."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    log, start = tmp_path / "log", tmp_path / "start" / "sitecustomize.py"
    start.parent.mkdir()
    start.write_text(SLOW)
    log.touch()
    with monkeypatch.context() as environment:
        environment.setenv("SWEEP_LOG", str(log))
        # Workers find the package where this process does.
        package = Path(twill_gpu.__file__).parents[1]
        environment.setenv("PYTHONPATH", os.pathsep.join(map(str, (start.parent, package))))
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        workers = {node.node_id: node for node in (made.add_node(num_cpus=1) for _ in range(2))}
        made.wait_for_nodes()
    try:
        yield made, workers, lambda: [line.split() for line in log.read_text().splitlines()]
    finally:
        ray.shutdown()
        made.shutdown()


@pytest.mark.skipif(not os.environ.get("TWILL_LONG"), reason="it waits for Ray: TWILL_LONG=1")
class TestRay:
    def test_a_worker_is_killed(self, cluster, tmp_path):
        made, workers, told = cluster
        state, hold, killed = tmp_path / "sweep.jsonl", tmp_path / "log.hold", []

        def kill(text):
            if text.startswith("bounds: 8 "):
                hold.touch()
                # Those that were past the hold end meanwhile.
                time.sleep(2)
                under_way = {}
                for what, node, key, process in told():
                    under_way[key] = (node, int(process)) if what == "begins" else None
                node, process = next(filter(None, under_way.values()))
                killed.append((node, keys_of(state)))
                # A process may outlive its node for a while, and finish.
                os.kill(process, signal.SIGKILL)
                made.remove_node(workers[node], allow_graceful=False)
                hold.unlink()

        given = {**ATTENTION, "solve": 4}
        space = {**HEADS, "compute_groups": [1, 2]}
        found = twill_gpu.sweep(
            attention.attention_forward, space, ray=made.address, state=state, **given | {"progress": kill}
        )
        ((node, done_before),) = killed
        assert not found.interrupted
        assert all(row.status != "failed" for row in found.rows)
        # Both worked; what died with a worker was begun again on the other.
        assert {one for _, one, _, _ in told()} == set(workers)
        begun = {}
        for what, one, key, _ in told():
            if what == "begins":
                begun.setdefault(key, []).append(one)
        (other,) = {*workers} - {node}
        again = {key: where for key, where in begun.items() if len(where) > 1}
        assert again and all(where == [node, other] for where in again.values())
        # Finished jobs were written down once, and never begun again.
        keys = keys_of(state)
        assert len(keys) == len(set(keys)) and set(again) <= set(keys)
        assert done_before and not set(again) & set(done_before)
        # Here, without Ray, all of it is the same.
        given |= {"workers": 1, "state": tmp_path / "alone.jsonl"}
        alone = twill_gpu.sweep(attention.attention_forward, space, **given)
        assert plain(found) == plain(alone)
        assert set(keys) >= set(keys_of(tmp_path / "alone.jsonl"))

    def test_no_cluster_there(self):
        pytest.importorskip("ray")
        with pytest.raises(twill_gpu.InputError, match="cannot reach"):
            twill_gpu.sweep(EXAMPLES / "gemm_tma.ttir", ray="auto", progress=False)
