"""Names that would act if they were taken for more than names, and checks that they do not."""

import ast
import io
import re
import tokenize

MARK = "twill_was_here"
"""The function that every payload would call. As a word of its own it must stand in comments and texts alone."""

# Texts that close what they stand in: Python, C++, DOT, JSON, HTML, SMT-LIB, shells, paths.
PAYLOADS = [
    f'"); {MARK}(); ("',
    f"'); {MARK}(); ('",
    f'"""; {MARK}(); """',
    f"'''; {MARK}(); '''",
    f"*/ {MARK}(); /*",
    f"</script><script>{MARK}()</script>",
    f"</title><img src=x onerror={MARK}()>",
    f"|) (exit) {MARK} (|",
    f"$({MARK})`{MARK}`",
    f"../../{MARK}",
    f"{{{MARK}}} %s %n {{0}}",
    f"]; {MARK} -> {MARK}; n [",
    f"&quot;&lt;{MARK}",
    "ends in a backslash \\",
    'ends in three quotes"""',
    "??/",
    "import",
    "raise",
    "gl",
    "i",
    "tile",
    "k",
    "template",
    "0digit",
    "__class__",
]

# The same with what no name may hold; a kernel's own names are made fit to be shown, a graph's are refused.
CONTROLS = [
    f"line\n{MARK}()\n",
    f"return\r{MARK}()\r",
    f"form\x0c{MARK}()",
    f"next line\x85{MARK}()",
    "\x1b]0;title\x07\x1b[2J",
    "nul\x00",
    "\u202e\u2066turned",
    "\x1f7 7",
]


def mlir(text: str) -> str:
    """A text as a string literal of MLIR."""
    plain = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_ .,;:-+*/()[]{}<>$&|?%!=@`'~^")
    return "".join(chr(b) if chr(b) in plain else f"\\{b:02X}" for b in text.encode())


STATEMENTS = (ast.Import, ast.ImportFrom, ast.Assign, ast.FunctionDef, ast.ClassDef)


def python_faults(source: str) -> list[str]:
    """The parts of a Python module beyond imports, constants and functions, and calls of a payload."""
    faults = []
    tree = ast.parse(source)
    for index, node in enumerate(tree.body):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and index == 0
        if not isinstance(node, STATEMENTS) and not is_text:
            faults.append(f"line {node.lineno}: {type(node).__name__}")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME and token.string == MARK:
            faults.append(f"line {token.start[0]}: {token.line.strip()}")
    return faults


COMMENT_OR_TEXT = re.compile(r"""//(?:\\\s*\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)


def code_of_cpp(source: str) -> str:
    """C++ without comments and texts, a line that ends in a backslash joined to the next as the compiler does."""
    return COMMENT_OR_TEXT.sub(" ", source)


def cpp_faults(source: str) -> list[str]:
    """Where C++ calls a payload, or a comment swallows a line of code."""
    faults = re.findall(rf".*\b{MARK}\b.*", code_of_cpp(source))
    swallowed = [line for line in source.split("\n") if "//" in line and re.search(r"(\\|\?\?/)\s*$", line)]
    broken = [line for line in source.split("\n") if "\r" in line or "\x0c" in line]
    return faults + swallowed + broken
