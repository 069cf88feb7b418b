"""What a run of the GPU benchmark found: as JSON, as Markdown. No torch."""

import argparse
import datetime
import importlib.util
import json
import math
import platform
import subprocess
import sys
from pathlib import Path

from bench.gpu.kernel_folders import Generated
from bench.gpu.rows import NAIVE, PEERS, ROWS, Row
from bench.gpu.timing import REHEARSED, ROUNDS

GPU_FIELDS = ["name", "driver_version", "clocks.sm", "clocks.max.sm", "clocks.max.mem", "power.limit", "memory.total"]
"""Of nvidia-smi: clocks in MHz, power in W, memory in MiB."""


# ------------------------------------------------------------------------------------------------- the answer
def begin(
    options: argparse.Namespace, kernels: list[Generated], rows: list[Row], notes: list[str], revision: str | None
) -> dict:
    return {
        "date": datetime.date.today().isoformat(),
        "rehearsal": options.rehearsal,
        "revision": revision,
        "seed": options.seed,
        "rounds": REHEARSED if options.rehearsal else options.rounds,
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "gpu": gpu(),
        "versions": {},
        "kernels": [
            {"name": k.name, "example": k.example, "constants": k.constants, "naive": k.naive} for k in kernels
        ],
        "wanted": [row.name for row in (rows if options.rows else ROWS)],
        "checks": [],
        "rows": [],
        "notes": list(notes),
        "minutes": None,
    }


def gpu() -> dict:
    """What nvidia-smi says before the run."""
    try:
        query = ["nvidia-smi", f"--query-gpu={','.join(GPU_FIELDS)}", "--format=csv,noheader,nounits"]
        lines = subprocess.run(query, capture_output=True, text=True, check=True, timeout=20).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(GPU_FIELDS, (value.strip() for value in lines[0].split(",")))) if lines else {}


def importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def checked(kernel: Generated, events: list[dict]) -> dict:
    """The verdict on a kernel from what its check said."""
    cases = [event for event in events if event["event"] in ("checked", "failed")]
    reason = next((f"{text_of(case['shape'])}: {trouble(case)}" for case in cases if not case.get("passed")), "")
    last = next((event["shape"] for event in reversed(events) if event["event"] == "case"), None)
    end = next((event for event in events if event["event"] in ("hung", "broken")), None) or events[-1]
    finished = any(event["event"] == "done" for event in events)
    if not finished and not (reason and end["event"] == "broken"):
        at = f" at {text_of(last)}" if last else ""
        reason = f"{'hung' if end['event'] == 'hung' else 'stopped'}{at}: {end.get('reason', '')}"
    done = next((event for event in events if event["event"] == "done"), {})
    return {
        "name": kernel.name,
        "passed": finished and not reason,
        "reason": reason,
        "cases": cases,
        "info": done.get("info", {}),
    }


def trouble(case: dict) -> str:
    if case["event"] == "failed":
        return case["reason"]
    text = ", ".join(f"error of {name} {error:.1e}" for name, error in case["errors"].items())
    return text + (f", writes after the end of {', '.join(case['overrun'])}" if case["overrun"] else "")


def text_of(shape: object) -> str:
    return " ".join(f"{key}={value}" for key, value in shape.items()) if isinstance(shape, dict) else str(shape)


def row_result(row: Row, event: dict, seconds: float, sensors: dict, run: dict | None = None) -> dict:
    """A row's contenders with their speeds, our best one and its ratio to the best of every peer."""
    contenders = []
    for one in event["results"]:
        speed = lambda ms: event["flops"] / ms / 1e9
        low, high = one["ms_quartiles"]
        entry = one | {"tflops": speed(one["ms"]), "tflops_quartiles": [speed(high), speed(low)]}
        entry["burst_tflops"] = speed(one["burst_ms"]) if one["burst_ms"] else None
        contenders.append(entry)
    best = {}
    for kind in ("generated", *PEERS):
        of_kind = [one for one in contenders if one["kind"] == kind]
        if of_kind:
            best[kind] = max(of_kind, key=lambda one: one["tflops"])
    ours = best.pop("generated", None)
    spread = {}
    for one in contenders:
        one["ratios"] = {peer: one["tflops"] / other["tflops"] for peer, other in best.items()}
    if ours:
        for peer, other in best.items():
            by_round = [theirs / own for own, theirs in zip(ours["ms_rounds"], other["ms_rounds"])]
            spread[peer] = [min(by_round), max(by_round)]
    bursts = {
        peer: ours["burst_tflops"] / other["burst_tflops"]
        for peer, other in best.items()
        if ours and ours["burst_tflops"] and other["burst_tflops"]
    }
    return {
        "row": row.name,
        "run": run,
        "size": event["size"],
        "flops": event["flops"],
        "seconds": seconds,
        **sensors,
        "contenders": contenders,
        "ours": ours and ours["name"],
        "best": {peer: other["name"] for peer, other in best.items()},
        "ratios": ours["ratios"] if ours else {},
        "ratio_spread": spread,
        "burst_ratios": bursts,
    }


def targets(answer: dict) -> list[dict]:
    """Every target of the rows that were wanted, with what was measured."""
    found = []
    results = {result["row"]: result for result in answer["rows"]}
    for row in (row for row in ROWS if row.name in answer["wanted"]):
        result = results.get(row.name)
        for target in row.targets:
            measured = result["ratios"].get(target.peer) if result else None
            spread = result["ratio_spread"].get(target.peer) if result else None
            if measured is None:
                verdict = "not measured"
            elif target.stretch and measured >= target.stretch:
                verdict = "stretch reached"
            else:
                verdict = "reached" if measured >= target.reach else "MISSED"
            found.append(
                {
                    "row": row.name,
                    "against": target.peer,
                    "reach": target.reach,
                    "stretch": target.stretch,
                    "measured": measured,
                    "spread": spread,
                    "verdict": verdict,
                }
            )
    return found


def merged(answer: dict, earlier: dict) -> dict:
    """An answer with the rows, kernels and checks of an earlier one that it does not have itself."""
    of = lambda key, name: {one[name]: one for one in earlier.get(key, [])} | {one[name]: one for one in answer[key]}
    order = {row.name: index for index, row in enumerate(ROWS)}
    rows = sorted(of("rows", "row").values(), key=lambda row: order.get(row["row"], len(order)))
    wanted = [row.name for row in ROWS if row.name in (*answer["wanted"], *earlier.get("wanted", []))]
    named = {"kernels": list(of("kernels", "name").values()), "checks": list(of("checks", "name").values())}
    return answer | named | {"rows": rows, "wanted": wanted}


def save(answer: dict, folder: Path, keep: bool = False) -> None:
    """Writes gpu.json and gpu.md, neither of them half-written; `keep`: with the rows that are there and not in the answer."""
    if keep and (folder / "gpu.json").exists():
        answer = merged(answer, json.loads((folder / "gpu.json").read_text(encoding="utf-8")))
    folder.mkdir(parents=True, exist_ok=True)
    data = json.dumps(finite(answer), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for suffix, text in ((".json", data), (".md", markdown(answer))):
        path = folder / f"gpu{suffix}"
        part = path.with_suffix(suffix + ".part")
        part.write_text(text + "\n", encoding="utf-8")
        part.replace(path)
    if answer["minutes"] is not None:
        print(f"written: {path.with_suffix('.json')} and .md", file=sys.stderr)


def finite(node: object) -> object:
    """JSON has no NaN and no infinity."""
    if isinstance(node, dict):
        return {key: finite(value) for key, value in node.items()}
    if isinstance(node, list):
        return [finite(value) for value in node]
    return str(node) if isinstance(node, float) and not math.isfinite(node) else node


# ------------------------------------------------------------------------------------------------- as Markdown
def markdown(answer: dict) -> str:
    gpu, versions = dict.fromkeys(GPU_FIELDS, "?") | answer["gpu"], answer["versions"]
    shown = ", ".join(f"{name} {value}" for name, value in versions.items() if value and name != "multiprocessors")
    lines = [
        f"# Speed on a GPU, {answer['date']}{' (REHEARSAL: these times mean nothing)' if answer['rehearsal'] else ''}",
        "",
        f"- GPU: {gpu['name']}, {versions.get('multiprocessors', '?')} multiprocessors, driver {gpu['driver_version']};"
        f" SM clock at most {gpu['clocks.max.sm']} MHz, {gpu['clocks.sm']} MHz before the run;"
        f" power limit {gpu['power.limit']} W",
        f"- versions: {shown or 'unknown'}; {answer['system']}",
        f"- commit: {answer['revision'] or 'unknown'}; seed of the inputs {answer['seed']}"
        + (f"; {answer['minutes']:.1f} minutes in all" if answer["minutes"] is not None else ""),
        "",
        *legend(answer),
        "",
        "## Targets",
        "",
        *target_table(answer),
        "",
        *(line for result in answer["rows"] for line in row_table(result)),
        *check_table(answer),
    ]
    if answer["notes"]:
        lines += ["## Notes", "", *(f"- {note}" for note in answer["notes"]), ""]
    return "\n".join(lines).rstrip()


def legend(answer: dict) -> list[str]:
    return [
        f"TFLOP/s sustained: median and quartiles of launches in {answer.get('rounds', ROUNDS)} rounds of blocks unless a row says otherwise,",
        "in opposite order every other round; the card is mostly at its power limit there. Burst: a short run after a rest. × is the",
        "speed relative to the best of that peer in the same run. Errors are ‖out − reference‖ / ‖reference‖ against float64 at the size shown.",
    ]


def target_table(answer: dict) -> list[str]:
    lines = table_head(["row", "against", "reach", "stretch", "measured", "rounds", "verdict"], "llrrrrl")
    for one in targets(answer):
        stretch = f"{one['stretch']:.2f}" if one["stretch"] else ""
        measured = f"**{one['measured']:.3f}**" if one["measured"] is not None else "–"
        rounds = f"{one['spread'][0]:.3f}–{one['spread'][1]:.3f}" if one["spread"] else ""
        lines.append(
            line([one["row"], one["against"], f"{one['reach']:.2f}", stretch, measured, rounds, one["verdict"]])
        )
    return lines


def row_table(result: dict) -> list[str]:
    peers = list(result["best"])
    lines = [f"## {result['row']}", "", result["size"] + clocks(result) + origin(result), ""]
    counted = any("cycles" in one for one in result["contenders"])
    head = ["contender", "TFLOP/s", "quartiles", "burst", *(f"× {peer}" for peer in peers), "error"]
    lines += table_head(
        head + (["M cycles", "tensor"] if counted else []), "lrrr" + "r" * len(peers) + "l" + ("rr" if counted else "")
    )
    for one in sorted(result["contenders"], key=lambda one: -one["tflops"]):
        name = f"**{one['name']}**" if one["kind"] in ("generated", "part", NAIVE) else one["name"]
        low, high = one["tflops_quartiles"]
        burst = f"{one['burst_tflops']:.1f}" if one["burst_tflops"] else ""
        error = ", ".join(f"{name} {error:.1e}" for name, error in one["errors"].items())
        cells = [
            name + (" (host-bound)" if one["host_bound"] else ""),
            f"{one['tflops']:.1f}",
            f"{low:.1f}–{high:.1f}",
            burst,
        ]
        cells += [f"{one['ratios'][peer]:.3f}" for peer in peers] + [error]
        lines.append(line(cells + (cycle_cells(one.get("cycles", {})) if counted else [])))
    return [*lines, ""]


def clocks(result: dict) -> str:
    return (
        f"; SM clock {result['sm_mhz']:.0f} MHz, {result['watts']:.0f} W (medians while busy)"
        if "watts" in result
        else ""
    )


def origin(result: dict) -> str:
    """The run that a row is of."""
    run = result.get("run")
    return f"; {run['date']}, {run['revision'] or 'unknown'}, {run['rounds']} rounds" if run else ""


def cycle_cells(cycles: dict) -> list[str]:
    tensor = f"{cycles['tensor_percent']:.1f} %" if "tensor_percent" in cycles else ""
    return [f"{cycles['cycles'] / 1e6:.3f}" if "cycles" in cycles else "", tensor]


def check_table(answer: dict) -> list[str]:
    if not answer["checks"]:
        return []
    what = "Largest errors over loops of one, two, three and many trips, three runs of each; peers' on the same inputs."
    lines = ["## Correctness at small sizes", "", what, ""]
    lines += table_head(["kernel", "verdict", "sizes", "largest error", "peers' largest", "of the kernel"], "llrlll")
    for check in answer["checks"]:
        cases = [case for case in check["cases"] if case["event"] == "checked"]
        ours = largest(case["errors"] for case in cases)
        peers = {name for case in cases for name in case["peers"]}
        of_peer = lambda name, cases=cases: [
            errors for case in cases if isinstance(errors := case["peers"].get(name), dict)
        ]
        theirs = "; ".join(f"{name}: {largest(of_peer(name)) or 'failed'}" for name in sorted(peers))
        info = ", ".join(
            f"{key} {value}"
            for key, value in check["info"].items()
            if key in ("ii", "stages", "status", "registers", "spills")
        )
        verdict = "right" if check["passed"] else f"**wrong**: {check['reason']}".replace("|", "/").replace("\n", " ")
        lines.append(line([check["name"], verdict, str(len(cases)), ours, theirs, info]))
    return [*lines, ""]


def largest(errors) -> str:
    found: dict[str, float] = {}
    for one in errors:
        for name, error in one.items():
            found[name] = error if math.isnan(error) else max(error, found.get(name, 0.0))
    return ", ".join(f"{name} {error:.1e}" for name, error in found.items())


def table_head(names: list[str], sides: str) -> list[str]:
    return [line(names), "|" + "|".join("--:" if side == "r" else "---" for side in sides) + "|"]


def line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
