"""Asks `twill gaus` and CP-SAT, checks their schedules from the files alone, and gives rows of figures."""

import json
import sys
import tempfile
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from bench.gaus.cases import ABLATIONS, CP_SAT, DOWNHILL, EXACT, OURS, STEP, Job, Question
from bench.gaus.check import Broken, Measured, check
from bench.gaus.child import Children, Ended

# Points of a trace that are kept.
POINTS = 80
# Runs of which the fastest counts, where what is measured is time.
REPEATS = 3
# Beyond its limit, what a command may take to read, bound, replay and write.
GRACE = 120.0


def answer(options: Namespace, children: Children, job: Job) -> dict:
    """One row: what it is about, what was found, how long it took, and how much memory it had."""
    part, graph, name = job.question.key
    row = {"part": part, "graph": graph, "question": name, "who": job.who, "seed": job.seed, "limit": job.seconds}
    if not job.question.random:
        row |= {"nodes": len(job.question.graph), "bound_on_latency": job.question.latency}
    ask = {CP_SAT: cp_sat, EXACT: exact, STEP: steps}.get(job.who, twill)
    try:
        return row | ask(options, children, job)
    except Broken as why:
        # Worth a row: nothing else would say so in the end.
        return row | {"status": "broken", "why": str(why)}


def twill(options: Namespace, children: Children, job: Job) -> dict:
    engine = ["--engine", "gaus" if job.who in (OURS, *ABLATIONS) else job.who, *ABLATIONS.get(job.who, [])]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "schedule.json"
        given = [*engine, "--seed", str(job.seed), "--time-limit", str(job.seconds), "--format", "json", "-q"]
        command = [str(options.twill), "gaus", *job.question.arguments(), *given, "-o", str(path)]
        ended = children.run(command, limit=job.seconds + GRACE)
        row = {"seconds": ended.seconds, "memory": ended.memory}
        if ended.code is None:
            return row | {"status": f"killed after {ended.seconds:.0f} s"}
        if ended.code not in (0, 3):
            return row | {"status": "failed", "why": ended.stderr.strip()[:400]}
        file = json.loads(path.read_text(encoding="utf-8"))
    summary = file.get("summary", file)
    row |= {"bound": summary["objective"]["lower_bound"], "least_interval": summary["least_interval"]}
    row |= {"at_start": summary["at_start"], "gradients": summary["gradients"], "parts": summary["seconds"]}
    row["trace"] = thinned(summary["trace"])
    if ended.code == 3:
        return row | {"status": "nothing found"}
    step = dict(zip((op["name"] for op in file["graph"]["operations"]), file["steps"], strict=True))
    measured = checked(job.question, [step[name] for name in job.question.graph.names], summary["interval"])
    said = summary["objective"]["value"]
    kind = "latency" if job.question.loop else job.question.kind
    if measured.score(kind, job.question.weights) != said:
        raise Broken(f"it says {said} of a schedule that is worth {measured}")
    return row | {"status": "found", "value": said, "interval": summary["interval"]} | figures(measured)


def exact(options: Namespace, children: Children, job: Job) -> dict:
    """The exact engine: the least interval, with a proof."""
    given = ["--engine", "exact", "--quiet", "--format", "json", "--time-limit", str(job.seconds)]
    command = [str(options.twill), "gaus", str(job.question.file), *given]
    ended = children.run(command, limit=job.seconds + GRACE)
    row = {"seconds": ended.seconds, "memory": ended.memory}
    if ended.code not in (0, 3):
        return row | {"status": "failed", "why": ended.stderr.strip()[:400]}
    file = json.loads(ended.stdout)
    row |= {"bound": file["lower_bound"]["interval"], "interval": file["initiation_interval"]}
    if row["interval"] is None:
        return row | {"status": "nothing found"}
    measured = checked(job.question, [file["times"][name] for name in job.question.graph.names], row["interval"])
    return row | {"status": "found", "value": measured.latency} | figures(measured)


def steps(options: Namespace, children: Children, job: Job) -> dict:
    """Time of a gradient step: of a descent without polish, less what is there without the descent; the least of three."""
    least: list[float] = []
    for more in (["--no-gradient"], []):
        command = [str(options.twill), "gaus", *job.question.arguments(), "--rounds", "1", *ABLATIONS[DOWNHILL], *more]
        command += ["--time-limit", str(job.seconds), "--format", "summary", "-q"]
        runs = [children.run(command, limit=job.seconds + GRACE) for _ in range(REPEATS)]
        if failed := next((ended for ended in runs if ended.code != 0), None):
            return {"status": "failed", "why": failed.stderr.strip()[:400]}
        summaries = [json.loads(ended.stdout) for ended in runs]
        least.append(min(summary["seconds"]["search"] for summary in summaries))
    row = {"status": "found", "seconds": runs[0].seconds, "memory": runs[0].memory, "nodes": summaries[0]["operations"]}
    row |= {"dependences": summaries[0]["dependences"], "gradients": summaries[0]["gradients"]}
    return row | {"step": max(least[1] - least[0], 0.0) / max(summaries[0]["gradients"], 1)}


def cp_sat(options: Namespace, children: Children, job: Job) -> dict:
    """Starts from the list schedule, and is worth as much if it is still building or presolving when time is over. Of a loop it starts
    from ours, and asks for fewer live values at that interval and latency.
    """
    question = job.question
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "start.json"
        engine = ["--time-limit", str(job.seconds / 10)] if question.loop else ["--engine", "list"]
        command = [str(options.twill), "gaus", *question.arguments(), *engine, "--format", "json", "-q"]
        ended = children.run([*command, "-o", str(path)], limit=job.seconds + GRACE)
        if ended.code != 0:
            return {"status": "failed", "why": f"no schedule to start from: {ended.stderr.strip()[:300]}"}
        file = json.loads(path.read_text(encoding="utf-8"))
    step = dict(zip((op["name"] for op in file["graph"]["operations"]), file["steps"], strict=True))
    hint, interval = [step[name] for name in question.graph.names], file["summary"]["interval"]
    if question.loop:
        latency = checked(question, hint, interval).latency
        question = replace(question, kind="storage", latency=latency)
    given = {"file": str(question.file.resolve()), "chaining": question.chaining, "kind": question.kind}
    given |= {"weights": question.weights, "latency": question.latency, "interval": interval, "hint": hint}
    given |= {"seconds": job.seconds, "seed": job.seed}
    ended = children.run([sys.executable, "-m", "bench.gaus.cpsat"], json.dumps(given), limit=job.seconds + GRACE)
    start = checked(question, hint, interval).score(question.kind, question.weights)
    row = {"seconds": ended.seconds, "memory": ended.memory, "start": start, "trace": [], "interval": interval}
    found = json.loads(ended.stdout) if ended.code == 0 else failure(ended)
    if found.get("why"):
        return row | {"status": "failed"} | found
    row |= {"proof": found["status"], "peer_bound": found["bound"], "trace": thinned(found["trace"])}
    row["parts"] = {"building": found["building"], "solving": found["solving"]}
    measured = checked(question, found["steps"] or hint, interval)
    value = min(measured.score(question.kind, question.weights), start)
    return row | {"status": "found", "value": value} | figures(measured)


def failure(ended: Ended) -> dict:
    """Out of time is an answer: the warm start's."""
    if ended.code is None:
        return {"status": "killed", "bound": None, "steps": None, "trace": [], "building": None, "solving": None}
    return {"why": ended.stderr.strip()[-400:] or f"exit code {ended.code}"}


def checked(question: Question, steps: list[int], interval: int | None) -> Measured:
    return check(question.graph, steps, question.latency, interval)


def figures(measured: Measured) -> dict:
    return {
        "latency": measured.latency,
        "peaks": measured.peaks,
        "storage": measured.storage,
        "communication": measured.communication,
    }


def thinned(trace: list) -> list:
    """The first, the last, and some in between."""
    if len(trace) <= POINTS:
        return trace
    return [trace[round(k * (len(trace) - 1) / (POINTS - 1))] for k in range(POINTS)]
