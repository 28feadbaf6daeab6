"""Lets workers compile each kernel once: a worker that needs one waits for the other, then loads it.

Without this all workers compile the same kernels at the same time, since each finds the cache on disk empty.
"""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

_LOCKS = Path(tempfile.gettempdir()) / "querycloak-test-kernels"
_held: set[str] = set()


@contextmanager
def _alone(kernel: str) -> Iterator[None]:
    """Hold the lock of a kernel; one that calls itself has it already."""
    if kernel in _held:
        yield
        return
    _LOCKS.mkdir(exist_ok=True)
    with (_LOCKS / sha256(kernel.encode()).hexdigest()[:16]).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _held.add(kernel)
        try:
            yield
        finally:
            _held.remove(kernel)


def share_compiled_kernels() -> None:
    """Make numba hold a kernel's lock while it looks for it on disk, compiles it and stores it."""
    compiled = Dispatcher.compile

    def compile_once(self: Any, sig: Any) -> Any:
        stored = getattr(self._cache, "cache_path", None)
        if stored is None:
            return compiled(self, sig)
        # numba's own lock first: its threads would otherwise wait for each other's kernels.
        with global_compiler_lock, _alone(f"{stored}/{self.py_func.__module__}.{self.py_func.__qualname__}"):
            return compiled(self, sig)

    Dispatcher.compile = compile_once
