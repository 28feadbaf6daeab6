"""Prints how large modules and functions are, and fails where one should have been split."""

from __future__ import annotations

import ast
import statistics
import sys
from pathlib import Path

#: Above these, split.
LONGEST_MODULE, LONGEST_FUNCTION = 600, 60


def function_sizes(tree: ast.AST) -> list[tuple[int, str]]:
    """Count the lines of every function's body, its docstring aside."""
    sizes = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            last = body[-1].end_lineno if body else node.lineno
            sizes.append((int(last or 0) - body[0].lineno + 1 if body else 0, node.name))
    return sizes


def main() -> int:
    """Measure `src`."""
    modules, functions = [], []
    for path in sorted(Path("src").rglob("*.py")):
        text = path.read_text("utf-8")
        modules.append((text.count("\n"), str(path)))
        functions += [(size, f"{path}:{name}") for size, name in function_sizes(ast.parse(text))]
    for what, sizes in (("modules", modules), ("functions", functions)):
        numbers = sorted(size for size, _ in sizes)
        ninth = numbers[int(0.9 * (len(numbers) - 1))]
        print(
            f"{what}: {len(numbers)}, median {statistics.median(numbers):g} lines, nine in ten within {ninth}"
        )
    long = [m for m in modules if m[0] > LONGEST_MODULE] + [f for f in functions if f[0] > LONGEST_FUNCTION]
    for size, name in long:
        print(f"too long: {name} ({size} lines)")
    return 1 if long else 0


if __name__ == "__main__":
    sys.exit(main())
