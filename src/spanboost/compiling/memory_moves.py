"""Move neighbours within an array, as the C function `memmove` does."""

from typing import Any

from spanboost.compiling.arrays import Array
from spanboost.compiling.registration import Options, add_compiled


def move_values(values: Array, to: int, first: int, number: int) -> None:
    """Copy `number` entries of a vector from place `first` to place `to`; they may overlap."""
    values[to : to + number] = values[first : first + number].copy()


def _compile_moves(options: Options) -> None:
    """Tell Numba how to compile `move_values`."""
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic, overload

    @intrinsic  # type: ignore[untyped-decorator]
    def move_memory(typing: Any, values: Any, to: Any, first: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            target, source = (builder.gep(array.data, [place]) for place in arguments[1:3])
            size = signature.args[0].dtype.bitwidth // 8
            cgutils.raw_memmove(builder, target, source, arguments[3], size)
            return context.get_dummy_value()

        return types.void(values, types.intp, types.intp, types.intp), generate

    @overload(move_values, jit_options=options, strict=False)  # type: ignore[untyped-decorator]
    def compiled(values: Any, to: Any, first: Any, number: Any) -> Any:
        if values.layout != "C":
            return None

        def run(values: Array, to: int, first: int, number: int) -> None:
            move_memory(values, to, first, number)

        return run


add_compiled(move_values, _compile_moves)
