"""What ptxas made of a kernel: its groups and loops in machine code, and where that is not what the schedule was made for."""

import re
import subprocess


class KernelError(Exception):
    """The kernel of the folder cannot be used; the message says why."""


# ------------------------------------------------------------------------------------------------- machine code
class Code:
    """Instructions of the kernel and its flow of control, in basic blocks numbered in the order of the text."""

    def __init__(self, sass, name):
        text, labels, here = [], {}, False
        for line in sass.splitlines():
            if m := re.match(r"\s*\.section\s+(\S+?),", line):
                here = m[1] == f".text.{name}"
            elif here and (m := re.match(r"(\.L_\w+):", line)):
                labels[m[1]] = len(text)
            elif here and (m := re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*)", line)):
                text.append(m[1].strip())
            elif here and text and (m := re.match(r"\s*(/\* 0x[0-9a-f]+ \*/)\s*$", line)):
                text[-1] += f" {m[1]}"
        if not text:
            raise KernelError(f"nvdisasm shows no code of {name}")
        ends = [i + 1 for i, line in enumerate(text) if re.search(r"\b(BRA|BRX|EXIT|RET|BPT)\b", line)]
        starts = sorted({0, *ends, *labels.values()} - {len(text)})
        self.blocks = [text[a:b] for a, b in zip(starts, starts[1:] + [len(text)])]
        block_of = {label: starts.index(i) for label, i in labels.items() if i < len(text)}
        self.successors, self.table = [], []
        for number, block in enumerate(self.blocks):
            last, to = block[-1], []
            if re.search(r"\bBR[AX]\b", last):
                to = [block_of[label] for label in re.findall(r"\.L_\w+", last) if label in block_of]
            if re.search(r"\bBRX\b", last):
                self.table = list(to)
            if not re.match(r"(BRA(\.\w+)* `|BRX|EXIT|RET|BPT)", last) and number + 1 < len(self.blocks):
                to.append(number + 1)
            self.successors.append(to)
        self.all = self.reached()
        self.table = self.table or self.compared()

    def compared(self):
        """Where workers begin, by number, if there are too few of them for a jump table: they compare theirs in turn."""
        loads = (i for i, block in enumerate(self.blocks) if any("LDS.U8" in line for line in block))
        at, workers, seen = next(loads, None), {}, set()
        while at is not None and at + 1 < len(self.blocks) and at not in seen:
            seen.add(at)
            block = self.blocks[at]
            test = re.search(r"ISETP\.(NE|EQ)\S* (P\d), PT, R\d+, (RZ|0x[0-9a-f]+), PT", "\n".join(block))
            branch = re.match(r"@(!?)(P\d) (BRA|EXIT)\b", block[-1])
            if not test or not branch or test[2] != branch[2]:
                break
            taken, following = self.successors[at][0], at + 1
            taken_if_equal = (test[1] == "EQ") != (branch[1] == "!")
            if branch[3] == "BRA":
                workers[int(test[3].replace("RZ", "0"), 0)] = taken if taken_if_equal else following
            at = following if taken_if_equal else taken
        return [workers[number] for number in sorted(workers)]

    def lines(self, blocks):
        """Instructions of blocks, in the order of the text."""
        return [line for block in sorted(blocks) for line in self.blocks[block]]

    def reached(self, without=None):
        """Blocks that control reaches from the start without passing one of them."""
        seen, todo = set(), [0] if without != 0 else []
        while todo:
            block = todo.pop()
            if block not in seen and block != without:
                seen.add(block)
                todo += self.successors[block]
        return seen

    def dominated(self, block):
        return self.all - self.reached(without=block)

    def loops(self):
        """Natural loops: header and blocks."""
        bodies = {}
        for header in {to for block in self.all for to in self.successors[block]}:
            inside = self.dominated(header)
            tails = [block for block in inside if header in self.successors[block]]
            if tails:
                body, todo = {header}, tails
                while todo:
                    block = todo.pop()
                    if block not in body:
                        body.add(block)
                        todo += [other for other in inside if block in self.successors[other]]
                bodies[header] = body
        return bodies

    def groups(self):
        """Blocks of each partition of warp_specialize: workers are targets of a jump table, the first is what is left."""
        workers = [self.dominated(block) for block in self.table]
        return [set(range(len(self.blocks))) - set().union(*workers)] + workers


TOKENS = re.compile(
    r"\b(HGMMA|QGMMA|IGMMA|UTC\w*MMA|UTCBAR|LDTM|STTM|WARPGROUP\.DEPBAR|MUFU\.EX2|SYNCS|UTMALDG|UTMASTG|LDGSTS|BAR)\b"
)
WORDS = {"WARPGROUP.DEPBAR": "DEPBAR", "MUFU.EX2": "EX2"}
WORK = {"HGMMA", "QGMMA", "IGMMA", "EX2", "UTMALDG", "LDGSTS", "LDTM", "STTM"}
WGMMA = {"HGMMA", "QGMMA", "IGMMA"}


def token(instruction):
    m = TOKENS.search(instruction.split(";")[0])
    return WORDS.get(m[1], m[1]) if m else None


def run_length(words):
    runs = []
    for word in words:
        if runs and runs[-1][0] == word:
            runs[-1][1] += 1
        else:
            runs.append([word, 1])
    return " ".join(word if count == 1 else f"{word}*{count}" for word, count in runs)


def works(lines):
    return any(word in WORK or word.endswith("MMA") for line in lines if (word := token(line)))


def main_loops(code):
    """Innermost loops that load, issue MMAs or exponentiate; those that only spin on a barrier belong to what is around."""
    loops = code.loops()
    working = {header: body for header, body in loops.items() if works(code.lines(body))}
    innermost = {h: body for h, body in working.items() if not any(other < body for other in working.values())}
    for header, body in sorted(innermost.items()):
        spins = set().union(*(other for other in loops.values() if other < body))
        # From the header on, also where the text of the loop begins before it.
        order = body - spins
        yield header, code.lines(b for b in order if b >= header) + code.lines(b for b in order if b < header)


def describe(lines):
    """One iteration: the order of what matters, and how many exponentials run while a wgmma is in flight."""
    words = [(token(line), line) for line in lines]
    waits, open_group, in_flight, overlapped = [], False, 0, 0
    for _ in range(2):  # the second pass begins with what the first left in flight
        waits, overlapped, since = [], 0, 0
        for word, line in words:
            if word in WGMMA:
                open_group, since = "gsb0" not in line, 0
                in_flight += not open_group
            elif word == "EX2":
                overlapped, since = overlapped + (in_flight > 0 or open_group), since + 1
            elif word == "DEPBAR":
                pending = int(re.search(r"gsb0, (0x[0-9a-f]+)", line)[1], 16)
                waits.append({"pending": pending, "exp2_since_issue": since})
                in_flight = min(in_flight, pending)
    known = [word for word, _ in words if word]
    return {
        "order": run_length(known),
        "instructions": len(lines),
        "mma": sum(word in WGMMA or word.endswith("MMA") for word in known),
        "exp2": known.count("EX2"),
        "exp2_overlapped": overlapped,
        "waits": waits,
        "code": [re.sub(r"\s+", " ", line) for line in lines],
    }


def set_registers(lines):
    return [int(m[1], 16) for line in lines if (m := re.search(r"USETMAXREG.*?(0x[0-9a-f]+)", line))]


def describe_groups(code, kernel):
    """Warp groups in the order of the partitions of warp_specialize, without those that only fill up warps."""
    names = kernel.get("groups", [])
    groups, loops = [], list(main_loops(code))
    # One group alone has no workers.
    parts = [set(range(len(code.blocks)))] if len(names) == 1 else code.groups()
    for number, blocks in enumerate(parts):
        lines = code.lines(blocks)
        used = number < len(names) if names else number == 0 or any(token(line) not in (None, "BAR") for line in lines)
        if not used:
            continue
        registers = set_registers(lines)
        if number == 0:
            # Entry, then what this group keeps, then all that the workers gave back.
            registers = registers[-2:-1]
        groups.append(
            {
                "name": names[number] if number < len(names) else f"partition_{number}",
                "registers": registers[0] if registers else None,
                "used_registers": 1 + max((number for line in lines for number in registers_of(line)), default=-1),
                "local_loads": sum("LDL" in line for line in lines),
                "local_stores": sum("STL" in line for line in lines),
                "loops": [describe(body) for header, body in loops if header in blocks],
            }
        )
    used = early_use(code)
    if used and groups:
        groups[0]["early_use"] = re.sub(r"\s+", " ", used.split(";")[0])
    return groups


# ------------------------------------------------------------------------------------------------- MMAs in flight
MMA = re.compile(r"\b([HQI]GMMA)\.(?:SP\.)?\d+x(\d+)x\d+\.(\w+)\S* R(\d+), (.*)")
WIDTHS = {".M88.4": 4, ".M88.2": 2, ".128": 4, ".64": 2, ".WIDE": 2}
MOST_IN_FLIGHT = 8


def results_of(mma):
    """Registers of a thread that hold the result of a wgmma: half as many as it has columns, or a quarter in f16."""
    count = int(mma[2]) // (4 if mma[3] == "F16" else 2)
    return frozenset(range(int(mma[4]), int(mma[4]) + count))


PREDICATE = re.compile(r"!?U?P(T|\d+)$")


def registers_of(line):
    """Registers that an instruction names, and those that follow them in wide operands."""
    opcode, _, operands = re.sub(r"^@\S+ ", "", line.strip()).partition(" ")
    width = next((count for word, count in WIDTHS.items() if word in opcode), 1)
    found = set()
    named = [operand for operand in operands.split(",") if not PREDICATE.match(operand.strip())]
    for place, operand in enumerate(named):
        # The factors of a wide product are no wider, nor are addresses, unless they say so.
        is_factor = ".WIDE" in opcode and place not in (0, len(named) - 1)
        own = 1 if is_factor or "[" in operand else width
        for register, is_pair in re.findall(r"\bR(\d+)(\.64)?", operand):
            found.update(int(register) + i for i in range(2 if is_pair else own))
    return found


def early_use_in(block, in_flight):
    """What a block leaves in flight, groups of MMAs from the oldest on, and what uses a result of one before its wait."""
    groups, used = list(in_flight), None
    for line in block:
        text = line.split(";")[0]
        if mma := MMA.search(text):
            results = results_of(mma)
            own = groups.pop()[0] if groups and groups[-1][1] else frozenset()
            # MMAs may follow each other in one accumulator.
            read = {int(n) for n in re.findall(r"\bR(\d+)", mma[5])} - {min(results)}
            others = [group for group, _ in groups] + [own]
            if any(read & group or (results & group and not results <= group) for group in others):
                used = used or line
            groups.append((own | results, "gsb0" not in text))
        elif wait := re.search(r"WARPGROUP\.DEPBAR\.LE gsb0, (0x[0-9a-f]+)", text):
            groups = groups[len(groups) - min(len(groups), int(wait[1], 16)) :]
        elif (registers := registers_of(text)) and any(registers & group for group, _ in groups):
            used = used or line
    return tuple(groups[-MOST_IN_FLIGHT:]), used


def joined(a, b):
    """What may be in flight where two ways join, counted from the newest."""
    long, short = (a, b) if len(a) >= len(b) else (b, a)
    ahead = len(long) - len(short)
    both = [(x | y, p or q) for (x, p), (y, q) in zip(long[ahead:], short)]
    return tuple(list(long[:ahead]) + both)


def early_use(code):
    """An instruction that uses the result of a wgmma which may still be in flight: then ptxas has moved it in front of the wait.

    Seen with ptxas 12.8 where MMAs of two accumulators take turns, and one is waited for with others in flight.
    """
    begins, todo, found = {0: ()}, [0], None
    while todo:
        block = todo.pop()
        left, used = early_use_in(code.blocks[block], begins[block])
        found = found or used
        for to in code.successors[block]:
            new = joined(begins[to], left) if to in begins else left
            if begins.get(to) != new:
                begins[to] = new
                todo.append(to)
    return found


# ------------------------------------------------------------------------------------------------- findings
SHARED_MEMORY = 232448
"""Most bytes of a thread block on sm_90 and sm_100."""

# What ptxas remarks, and what to do about it. The numbers of its notes differ between versions, the words do not.
NOTES = {"serialized": "serialised", "setmaxnreg": "registers_refused", "warpgroup.wait is injected": "added_wait"}
REMEDIES = {
    "setmaxnreg": "a group needs more registers than it asks for: give it more, or keep fewer values",
    "warpgroup.wait is injected": "a value in flight is used, or a branch joins, before the wait that is there for it",
    "insufficient register resources": "smaller tiles, fewer values alive in the loop, or more registers for the group",
    "defining accumulator registers": "an accumulator is written between issue and wait: write it before or after",
    "reading accumulator registers": "an accumulator is read between issue and wait: read it after the wait",
    "defining input registers": "an operand in registers is overwritten before its wait: name it in the deps of that",
    "crossing function boundary": "something in the loop is called instead of inlined",
    "Extern calls": "something in the loop is an external call, such as an assertion or a print",
    "divergent path": "issue or wait stands in a branch that ptxas does not know to be uniform",
    "ill formed pipeline stage": "issue, commit and wait do not pair up on every path, for instance around a branch",
}


MANY_SPILLED = 256
"""Bytes of spills that matter also outside of loops."""


def spills_in_loops(groups):
    """Instructions of innermost loops that keep values in memory; none if there are no loops whose code is known."""
    loops = [loop["code"] for group in groups for loop in group["loops"]]
    return sum("LDL" in line or "STL" in line for code in loops for line in code) if loops else None


def judge(report, expectation):
    """Where the machine code is not what the schedule was made for."""
    findings = []

    def found(kind, message):
        findings.append({"kind": kind, "message": message})

    for note in report["notes"]:
        kind = next((kind for words, kind in NOTES.items() if words in note["message"]), None)
        if kind:
            remedy = next((f": {text}" for words, text in REMEDIES.items() if words in note["message"]), "")
            found(kind, f"{note['code']}: {note['message']}{remedy}")
    if report["shared_memory"] > SHARED_MEMORY:
        found("too_large", f"{report['shared_memory']} bytes of shared memory, where a GPU has {SHARED_MEMORY}")
    if report["spill_stores"] or report["spill_loads"]:
        where = (
            f"{group['name']} {group['local_stores']} STL, {group['local_loads']} LDL" for group in report["groups"]
        )
        spilled = f"{report['spill_stores']} bytes of spill stores, {report['spill_loads']} bytes of spill loads"
        few = report["spill_stores"] + report["spill_loads"] < MANY_SPILLED
        kind = "spilled_outside" if few and spills_in_loops(report["groups"]) == 0 else "spilled"
        found(kind, f"{spilled}: {'; '.join(where)}")
    if report["barriers_at"] < 0 and report["barriers"]:
        found("slow_barriers", "barriers are Gluon's own: 2 to 3 % slower than those that the kernel addresses itself")
    used = [group["early_use"] for group in report["groups"] if "early_use" in group]
    if used:
        found("early_use", f"{used[0]}: ptxas reads a result of wgmma before the wait for it, so that the kernel is wrong")
    for group in report["groups"]:
        wanted = expectation.get(group["name"], {}).get("exp2_overlapped", 0)
        got = max((loop["exp2_overlapped"] for loop in group["loops"]), default=0)
        if got < 0.9 * wanted:
            under = f"{got} exponentials of an iteration run under a wgmma where {wanted} were scheduled"
            found("hoisted_wait", f"{group['name']}: {under}: ptxas moved a wait in front of them")
    return findings


# ------------------------------------------------------------------------------------------------- the assembler
def is_sound(version, arch):
    """Whether a version does not overwrite what a wgmma of Hopper still reads: those before 13.3 can."""
    return arch != 90 or tuple(version) >= (13, 3)


def named(tool, version):
    """A tool and its version."""
    return f"{tool} {'.'.join(map(str, version)) or 'of an unknown version'}"


def assembler(tool, version, arch):
    """An assembler in words, with what there is to know of an old one."""
    if is_sound(version, arch):
        return named(tool, version)
    return f"{named(tool, version)}, which can overwrite operands of a wgmma in flight: versions from 13.3 on do not"


# ------------------------------------------------------------------------------------------------- the report
def disassemble(nvdisasm, cubin):
    """Machine code as text, each instruction with its encoding, and with lines of the source where the cubin has them."""
    sass = subprocess.run([nvdisasm, "-hex", "-c", "-g", cubin], capture_output=True, text=True)
    if sass.returncode != 0:
        raise KernelError(f"nvdisasm failed ({sass.returncode}):\n{sass.stderr}")
    return sass.stdout


SUM_OF_WGMMA = re.compile(r"wgmma\.mma_async\S*\s*\{([^}]*)\}")
VIRTUAL_REGISTER = re.compile(r"%[a-z]+\d+")
RESULT_AND_OPERANDS = re.compile(r"(?:@!?%p\d+\s+)?[a-z][\w.:]*\s+(\{[^}]*\}|[^,;\[{]+)(,.*)")


def unused_products(ptx):
    """How many sums of wgmma nothing reads in the PTX: sets of registers that only wgmma and its waits name."""
    sums, read = set(), set()
    for line in ptx.splitlines():
        code = line.split("//")[0].strip()
        if product := SUM_OF_WGMMA.search(code):
            sums.add(product[1])
            read.update(VIRTUAL_REGISTER.findall(code[: product.start()] + code[product.end() :]))
        elif code.count(";") == 1 and (written := RESULT_AND_OPERANDS.fullmatch(code)):
            read.update(VIRTUAL_REGISTER.findall(written[2]))
        else:
            read.update(VIRTUAL_REGISTER.findall(code))
    return sum(read.isdisjoint(VIRTUAL_REGISTER.findall(each)) for each in sums)


def report_of(kernel, ptx, log, groups, **more):
    """The report on a kernel from its PTX, from what `ptxas -v` said and from its groups in machine code."""

    def total(words):
        return sum(int(count) for count in re.findall(rf"(\d+) {words}", log))

    report = {
        "format": "twill-assembly",
        "version": 1,
        "name": kernel["name"],
        "architecture": kernel["architecture"],
        "registers": int(re.search(r"Used (\d+) registers", log)[1]),
        "stack": total("bytes stack frame"),
        "spill_stores": total("bytes spill stores"),
        "spill_loads": total("bytes spill loads"),
        **more,
        "barriers": ptx.count("mbarrier.init"),
        "unused_products": unused_products(ptx),
        "setmaxnreg": [int(value) for value in re.findall(r"setmaxnreg\.\w+\.sync\.aligned\.u32\s+(\d+)", ptx)],
        "warnings": [line for line in log.splitlines() if " warning " in line],
        "notes": [{"code": code, "message": text.strip()} for code, text in re.findall(r"\((C7\d+)\) (.*)", log)],
        "groups": groups,
    }
    report["findings"] = judge(report, kernel.get("sass_expectation", {}))
    return report


def print_report(report):
    size = f"{report['warps']} warps, {report['registers']} registers at entry"
    memory = f"{report['shared_memory']} bytes of shared memory, barriers at {report['barriers_at']}"
    print(f"{report['name']} for {report['architecture']}: {size}, {memory}")
    for group in report["groups"]:
        spills = f"{group['local_loads']} LDL, {group['local_stores']} STL"
        print(f"{group['name']}: {group['registers']} registers, {spills}")
        for loop in group["loops"]:
            under = f", {loop['exp2_overlapped']} of {loop['exp2']} exponentials under a wgmma" if loop["exp2"] else ""
            print(f"  loop of {loop['instructions']} instructions{under}: {loop['order']}")
    if "assembler" in report:
        print(f"assembled by {report['assembler']}")
    for finding in report["findings"]:
        print(f"{finding['kind']}: {finding['message']}")
