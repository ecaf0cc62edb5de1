"""A hint to the processor that compiled code will soon need an entry of a table."""

from typing import Any

from spanboost.compiling.arrays import Array
from spanboost.compiling.registration import Options, add_compiled


def prefetch(table: Array, entry: int) -> None:
    """Start to read table[entry] into the cache of the processor; nothing waits for it.

    The processor reads all lines of the cache that the entry is on. Plain Python ignores the hint.
    """


def _compile_prefetch(options: Options) -> None:
    """Tell Numba how to compile `prefetch`."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic, overload

    @intrinsic  # type: ignore[untyped-decorator]
    def fetch_line(typing: Any, table: Any, entry: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, values[0])
            stride = cgutils.unpack_tuple(builder, array.strides)[0]
            place = builder.add(builder.mul(values[1], stride), values[2])
            start = builder.bitcast(array.data, cgutils.voidptr_t)
            word = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word])
            hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            read, keep, data = word(0), word(3), word(1)
            builder.call(hint, [builder.gep(start, [place]), read, keep, data])
            return context.get_dummy_value()

        return types.void(table, types.intp, types.intp), generate

    @overload(prefetch, jit_options=options, strict=False)  # type: ignore[untyped-decorator]
    def compiled(table: Any, entry: Any) -> Any:
        size = table.dtype.bitwidth // 8

        def run(table: Array, entry: int) -> None:
            for at in range(0, table[0].size * size, _LINE):
                fetch_line(table, entry, at)

        return run


_LINE = 64  # bytes
add_compiled(prefetch, _compile_prefetch)
