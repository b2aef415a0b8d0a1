"""Vectors of 64 bytes for compiled loops, since the compiler does not find them by itself where loops are short.

A vector is a value like a number: it can be multiplied, added and subtracted. Machines with narrower registers take
several of them.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as typed_intrinsic
from numba.extending import models, overload, register_model

from lgmd.linalg.row_systems import FASTMATH

__all__ = ["VECTOR_BYTES", "add_to", "load", "repeated", "store"]

VECTOR_BYTES = 64

# Compiled code calls these without the context that their types say they take.
intrinsic: Any = typed_intrinsic


class _Vector(types.Type):
    """As many numbers as fit."""

    def __init__(self, dtype):
        self.dtype = dtype
        self.width = VECTOR_BYTES * 8 // dtype.bitwidth
        super().__init__(name=f"Vector({dtype})")


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, ir.VectorType(manager.lookup(kind.dtype).get_value_type(), kind.width))


def _place(context, builder, kinds, values, width):
    """Where ``width`` numbers begin in an array, and how they are aligned."""
    (array_kind, index_kind), (array, index) = kinds, values
    indices = [
        context.cast(builder, position, kind, types.intp)
        for position, kind in zip(cgutils.unpack_tuple(builder, index), index_kind, strict=True)
    ]
    view = context.make_array(array_kind)(context, builder, array)
    first = cgutils.get_item_pointer(context, builder, array_kind, view, indices, wraparound=False)
    element = context.get_data_type(array_kind.dtype)
    return builder.bitcast(first, ir.VectorType(element, width).as_pointer()), array_kind.dtype.bitwidth // 8


@intrinsic
def load(typing, array, index):
    """The numbers that begin at ``array[index]``."""
    result = _Vector(array.dtype)

    def code(context, builder, signature, values):
        place, align = _place(context, builder, signature.args, values, result.width)
        return builder.load(place, align=align)

    return result(array, index), code


@intrinsic
def store(typing, array, index, vector):
    """Write a vector from ``array[index]`` on."""

    def code(context, builder, signature, values):
        place, align = _place(context, builder, signature.args[:2], values[:2], vector.width)
        builder.store(values[2], place, align=align)
        return context.get_dummy_value()

    return types.void(array, index, vector), code


@intrinsic
def add_to(typing, array, index, vector):
    """Add a vector from ``array[index]`` on, in the precision of an array of doubles."""

    def code(context, builder, signature, values):
        place, align = _place(context, builder, signature.args[:2], values[:2], vector.width)
        before, added = builder.load(place, align=align), values[2]
        if vector.dtype != array.dtype:
            added = builder.fpext(added, before.type)
        builder.store(builder.fadd(before, added), place, align=align)
        return context.get_dummy_value()

    return types.void(array, index, vector), code


@intrinsic
def repeated(typing, number):
    """A vector of equal numbers."""
    result = _Vector(number)

    def code(context, builder, signature, values):
        kind = context.get_data_type(result)
        first = builder.insert_element(ir.Constant(kind, ir.Undefined), values[0], ir.Constant(ir.IntType(32), 0))
        order = ir.Constant(ir.VectorType(ir.IntType(32), result.width), [0] * result.width)
        return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), order)

    return result(number), code


def _define(symbol, instruction: str) -> None:
    """Let vectors take part in an operation."""

    @intrinsic
    def apply(typing, x, y):
        def code(context, builder, signature, values):
            return getattr(builder, instruction)(*values, flags=sorted(FASTMATH))

        return x(x, y), code

    @overload(symbol)
    def of_vectors(x, y):
        if isinstance(x, _Vector) and x == y:
            return lambda x, y: apply(x, y)
        return None


_define(operator.add, "fadd")
_define(operator.sub, "fsub")
_define(operator.mul, "fmul")
