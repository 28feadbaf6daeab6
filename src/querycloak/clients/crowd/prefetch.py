"""Prefetch an element of an array from main memory before it is read."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

_READ, _KEEP, _DATA = 0, 3, 1  # for reading, in all caches, data


def _prefetch(typing: Any, array: Any, place: Any) -> Any:
    """Prefetch an element; the place is not checked."""

    def ask(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        made = context.make_array(kind)(context, builder, arguments[0])
        at = cgutils.get_item_pointer(context, builder, kind, made, [arguments[1]])  # type: ignore[no-untyped-call]
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        form = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        call = builder.module.declare_intrinsic("llvm.prefetch", [byte], form)
        builder.call(call, [builder.bitcast(at, byte), number(_READ), number(_KEEP), number(_DATA)])
        return context.get_dummy_value()

    return types.void(array, place), ask


prefetch: Any = intrinsic(_prefetch)
