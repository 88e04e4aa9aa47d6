"""Calls of machine code that was made for one robot (`symbolic.print_llvm`) from compiled loops that serve all of them."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core.cgutils import create_struct_proxy
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic

__all__ = ["address_of", "call_address", "global_compiler_lock"]


@intrinsic
def address_of(typing, array):
    """Return where the numbers of an array begin in memory."""

    def generate(context, builder, signature, values):
        data = create_struct_proxy(array)(context, builder, values[0]).data
        return builder.ptrtoint(data, ir.IntType(64))

    return types.int64(array), generate


@intrinsic
def call_address(typing, address, places):
    """Call the function at an address with a tuple of addresses."""

    def generate(context, builder, signature, values):
        words = [builder.extract_value(values[1], i) for i in range(len(places))]
        function = ir.FunctionType(ir.VoidType(), [ir.IntType(64)] * len(words))
        builder.call(builder.inttoptr(values[0], function.as_pointer()), words)
        return context.get_dummy_value()

    return types.void(types.int64, places), generate
