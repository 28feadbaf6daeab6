"""Work for another thread, and the future that receives its result."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Task:
    """Work for the thread that owns the data it uses."""

    work: Callable[[], Any]
    result: Future[Any] = field(default_factory=Future)

    def run(self) -> None:
        """Run the work, unless it was cancelled; an exception goes to the future."""
        if not self.result.set_running_or_notify_cancel():
            return
        try:
            self.result.set_result(self.work())
        except Exception as error:
            self.result.set_exception(error)
