"""`measures.md`: what `querycloak measure` prints, and the functions behind it."""

from __future__ import annotations

import inspect

from pages.markdown import fenced, first_line, signature, table
from pages.markdown import page as put_together
from querycloak import measures
from querycloak.registry import MEASURES


def function(name: str) -> list[str]:
    """Describe one public function."""
    part = getattr(measures, name)
    return [
        f"### measures.{name}",
        fenced(signature(part)),
        inspect.getdoc(part) or "",
    ]


def as_markdown(text: str) -> str:
    """Fence the doctest lines of a docstring."""
    prose, prompt, example = text.partition(">>>")
    return prose.strip() + ("\n\n" + fenced(">>>" + example, "python") if prompt else "")


def page() -> str:
    """Write the page."""
    rows = [
        (f"`{name}`", MEASURES.get(name).help, first_line(MEASURES.get(name).__doc__))
        for name in MEASURES.built_in
    ]
    functions = []
    for name in measures.__all__:
        title, signature, text = function(name)
        functions += [title, signature, as_markdown(text)]
    return put_together(
        "# Measures",
        "`querycloak measure RELEASE --original LOG` runs them all, `-u NAME` only some. A measure that "
        "has nothing to say about two logs answers *not applicable* and says why.",
        table(("name", "what it gives", "in words"), rows),
        "## In Python",
        "`qc.measure(original, released)` takes two logs. The functions below take plain values.",
        fenced(f"from querycloak.measures import {', '.join(measures.__all__)}", "python"),
        *functions,
    )
