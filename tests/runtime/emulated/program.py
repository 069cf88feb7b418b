"""PTX text as a list of instructions."""

import re
from dataclasses import dataclass


@dataclass
class Instruction:
    """One instruction. `guard` is a predicate's name, which must be false where `negated`."""

    name: str
    operands: list
    guard: str = ""
    negated: bool = False
    line: int = 0

    def __post_init__(self):
        self.parts = self.name.split(".")
        # The method of a warp that does it, and whether all threads of a warp have to come to it together.
        self.do = self.parts[0] if self.parts[0] in ("bra", "ret") else f"do_{self.parts[0]}"
        self.is_together = "sync" in self.parts and not self.name.startswith("cp.")

    def __str__(self):
        return f"line {self.line}: {self.name} {', '.join(map(str, self.operands))}"


class Program:
    """A kernel's instructions, where its labels are, and the names of its parameters."""

    def __init__(self, ptx: str):
        text = re.sub(r"//[^\n]*", "", ptx)
        entry = re.search(r"\.entry\s+(\w+)\((.*?)\)", text, re.DOTALL)
        self.name = entry[1]
        pointer = r"(?:\.ptr\s+(?:\.\w+\s+)*?\.align \d+\s+)?"
        self.parameters = re.findall(rf"\.param\s+(?:\.align \d+ )?\.(\w+)\s+{pointer}(\w+)", entry[2])
        self.shared = re.search(r"\.extern \.shared [^;]*?(\w+)\[\]", text)[1]
        of_bytes = r"\.global \.align \d+ \.b8 (\w+)\[(\d+)\];"
        self.globals = {name: int(size) for name, size in re.findall(of_bytes, text)}
        start = text.index("{", entry.end())
        self.code, self.labels = [], {}
        self._statements(text[start + 1 : text.rindex("}")], text[: start + 1].count("\n") + 1)

    def _statements(self, body, line):
        block, opened = 0, []
        for statement in re.split(r"(;|\n\s*\$\w+:)", body):
            here, line = line, line + statement.count("\n")
            # A brace that opens a block of its own labels, and not a vector.
            text = statement.strip()
            while text.startswith(("{", "}")):
                if text[0] == "{":
                    block += 1
                    opened.append(block)
                else:
                    opened.pop()
                text = text[1:].strip()
            while label := re.match(r"(\$?\w+):(?!:)\s*", text):
                self.labels[self._local(label[1], opened)] = len(self.code)
                text = text[label.end() :]
            if not text or text == ";" or text.startswith("."):
                continue
            guard = re.match(r"@(!?)([%\w]+)\s+", text)
            if guard:
                text = text[guard.end() :]
            name, *rest = text.split(None, 1)
            operands = [operand(o) for o in split(rest[0] if rest else "")]
            if name.startswith("bra"):
                operands = [self._local(operands[0], opened)]
            at = here + statement[: len(statement) - len(statement.lstrip())].count("\n")
            self.code.append(Instruction(name, operands, guard[2] if guard else "", bool(guard and guard[1]), at))

    @staticmethod
    def _local(label, opened):
        return label if label.startswith("$") else f"{label}@{opened[-1] if opened else 0}"


def operand(text):
    """A name or a number; a vector or an address as a list that begins with its bracket."""
    return [text[0], *(operand(o) for o in split(text[1:-1]))] if text[:1] in ("{", "[") else text


def split(text):
    """Operands, at commas that are not within brackets."""
    parts, depth, current = [], 0, ""
    for c in text:
        depth += (c in "{[") - (c in "}]")
        if c == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += c
    return [*parts, current.strip()] if current.strip() else parts
