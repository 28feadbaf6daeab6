"""Something that another thread should do, and the future in which its result comes back."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Task:
    """Work for the thread that owns what the work touches."""

    work: Callable[[], Any]
    result: Future[Any] = field(default_factory=Future)

    def carry_out(self) -> None:
        """Do it; whoever asked hears of a failure too."""
        if not self.result.set_running_or_notify_cancel():
            return
        try:
            self.result.set_result(self.work())
        except Exception as error:
            self.result.set_exception(error)
