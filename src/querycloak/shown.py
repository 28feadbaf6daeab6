"""How results show themselves in a notebook: small tables, with everything in them escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def table(head: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """Give a table as HTML."""
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{said}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def percent(share: float | None, digits: int = 1) -> str:
    """Write a share for a reader."""
    return "–" if share is None else f"{100 * share:.{digits}f} %"
