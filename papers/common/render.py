"""Pages from Jinja templates: numbers, tables, and paragraphs filled to one width.

A page is the file `page.md.j2` of its study. Each of its blocks is rendered with the public names of the
module `page`, the results, and what the function of the same name in `page` returns.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import jinja2

from papers.common.results import ROOT, Results

MISSING = "not measured in this run"
AS_IS = ("|", "#", "![", "<!--", "```")


def number(value: float | None, digits: int = 1, thousands: str = "") -> str:
    """Return a number as text, or a dash where there is none."""
    return "–" if value is None else f"{value:{thousands}.{digits}f}"


def with_unit(value: float | None, unit: str = " %", digits: int = 1) -> str:
    """Return a number with its unit, or a dash where there is none."""
    return number(value) if value is None else number(value, digits) + unit


def percent(share: float | None, digits: int = 2) -> str:
    """Return a share in percent, or a dash where there is none."""
    return "–" if share is None else f"{100 * share:.{digits}f} %"


def listed(words: Sequence[str]) -> str:
    """Return words joined for a sentence."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words) or "none"


def near(first: float, second: float) -> bool:
    """Whether two numbers differ by at most a quarter of the larger."""
    return abs(first - second) <= 0.25 * max(first, second)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: bool = True) -> str:
    """Return a Markdown table; columns after the first are right-aligned if they are numbers."""
    ruler = ["---", *["---:" if numbers else "---"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ruler, *rows])


def fill(text: str) -> str:
    """Fill the lines of paragraphs; tables, headings, figures and blocks of code stay as they are."""
    lines = textwrap.TextWrapper(110, break_long_words=False, break_on_hyphens=False)
    return "\n\n".join(
        block if block.startswith(AS_IS) else lines.fill(" ".join(block.split()))
        for block in re.split(r"\n\s*\n", text.strip())
    )


@cache
def environment() -> jinja2.Environment:
    """Return the environment of all templates."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ROOT / "papers"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["fmt"] = format
    found.filters["number"] = number
    found.filters["percent"] = percent
    found.globals |= {"table": table, "listed": listed, "MISSING": MISSING}
    return found


def blocks(template: str, module: ModuleType, results: Any, **more: Any) -> str:
    """Return the text of all blocks of a template, in order."""
    found = environment().get_template(template)
    names = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    parts = []
    for name, block in found.blocks.items():
        prepare = names.get(name)
        own = prepare(results) if callable(prepare) else {}
        context = found.new_context(names | {"results": results} | more | own)
        parts.append("".join(block(context)).strip())
    return "\n\n".join(part for part in parts if part)


def page_name(study: str) -> str:
    """Return the name of a study's page, such as `paper-003-crowd`."""
    return f"paper-{study[1:].replace('_', '-')}"


def page(study: str, results: Results) -> str:
    """Return the page of a study."""
    module = import_module(f"papers.{study}.page")
    text = blocks(f"{study}/page.md.j2", module, results)
    return (fill(text) if getattr(module, "FILLED", True) else text) + "\n"


def write(study: str, results: Results, folder: Path) -> Iterable[Path]:
    """Draw the figures of a study and write its page, with the tables beside it; return the pages."""
    name = page_name(study)
    figures = import_module(f"papers.{study}.figures")
    figures.draw(results, folder / name.replace("paper-", "figures-"))
    more = getattr(import_module(f"papers.{study}.page"), "MORE", {})
    pages = {folder / f"{name}.md": page(study, results)}
    pages |= {folder / f"{name}-{part}.md": text(results) for part, text in more.items()}
    for path, text in pages.items():
        path.write_text(text, "utf-8")
    return list(pages)
