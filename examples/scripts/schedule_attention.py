"""The optimal schedule of attention, from Python: what it is, why it is no faster, and other machines. Needs no GPU."""

from pathlib import Path

import twill_gpu

TTIR = Path(__file__).resolve().parents[1] / "attention_forward.ttir"

schedule = twill_gpu.schedule(TTIR, machine="h200")
print(schedule.timeline(width=100))
print(f"I = {schedule.ii} cycles with {schedule.stages} stages, {schedule.status}; no interval below {schedule.lower_bound} exists")
for group in schedule.groups:
    names = [one.name for one in schedule.operations if one.group == group.id]
    print(f"group {group.id} ({group.role}, {group.registers_per_thread} registers a thread): {', '.join(names)}")

print(schedule.explain(what_if=False))

# An exponential at half the cost, on a machine of our own.
h200 = twill_gpu.Machine("h200")
key = next(key for key in h200.numbers if key.startswith("costs.special_function") and "per" in key)
faster = h200.with_numbers("faster-exp2", {key: 2 * h200.numbers[key].value}, source="a thought")
print(f"{key} doubled: I = {twill_gpu.schedule(TTIR, faster).ii}")

# Schedules that are as good on paper, to be timed.
for other, why in zip(found := twill_gpu.alternatives(TTIR, 4, machine="h200"), found.differences):
    print(f"I = {other.ii}: {'; '.join(why[:3]) or 'the first'}")
