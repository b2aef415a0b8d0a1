"""The quadratic problem of one Newton step on the weights of a Laplacian, by products with its Hessian.

The Hessian of ``-ln|L(w) + c I|`` is never formed: with ``S`` the inverse of the matrix, its entry for two edges is
``(b_e' S b_f)^2``.
"""

from __future__ import annotations

import numba
import numpy as np

from lgmd.linalg.tiles import reflect_upper

__all__ = ["bounded_quadratic", "hessian_product"]

# A patient search along free variables looks at bounds once slopes have fallen to this share.
_PATIENCE = 0.1


@numba.njit(nogil=True, fastmath={"reassoc", "contract", "nsz"}, cache=True)
def hessian_product(covariance, rows, columns, units, vector, room, out):  # type: ignore[no-untyped-def]
    """Curvature along the edges and the ridge (last) of the direction ``D = L(v) + g I``: ``b_e' S D S b_e``."""
    n, m = len(covariance), len(rows)
    kind = covariance.dtype.type
    step = kind(vector[m] / units[m])
    for i in range(n):
        for k in range(n):
            room[i, k] = step * covariance[i, k]
    for e in range(m):
        if vector[e] != 0.0:
            step = kind(vector[e] / units[e])
            left, right = covariance[rows[e]], covariance[columns[e]]
            to_left, to_right = room[rows[e]], room[columns[e]]
            for k in range(n):
                change = step * (left[k] - right[k])
                to_left[k] += change
                to_right[k] -= change
    reflect_upper(room, True)
    for e in range(m):
        left, right = covariance[rows[e]], covariance[columns[e]]
        of_left, of_right = room[rows[e]], room[columns[e]]
        total = kind(0)
        for k in range(n):
            total += (left[k] - right[k]) * (of_left[k] - of_right[k])
        out[e] = total / units[e]
    trace = 0.0
    for i in range(n):
        total = kind(0)
        for k in range(n):
            total += covariance[i, k] * room[i, k]
        trace += total
    out[m] = trace / units[m]


@numba.njit(nogil=True, cache=True)
def bounded_quadratic(covariance, rows, columns, units, linear, lower, tolerances, most_products, patient):  # type: ignore[no-untyped-def]
    """Minimise ``linear'x + x'Hx/2`` over ``x >= lower``, from zero, by conjugate gradients on the free variables.

    A step that leaves the bounds is projected onto them and the directions start anew; they also do once the variables
    held at a bound want to leave it more than the free ones want to move. Where few bounds are in the way it pays to be
    patient, and to project only after the slopes have fallen, while that lowers the objective. Returns x and Hx.
    """
    m = len(linear)
    room = np.empty_like(covariance)
    x, slope = np.zeros(m), linear.copy()
    direction, product = np.zeros(m), np.zeros(m)
    held = np.zeros(m, np.bool_)
    value = 0.0
    n_products = 0
    exhausted = False
    while n_products < most_products and not exhausted:
        squares, done = 0.0, True
        for e in range(m):
            held[e] = x[e] <= lower[e] and slope[e] >= 0.0
            direction[e] = 0.0 if held[e] else -slope[e]
            squares += direction[e] ** 2
            done = done and abs(direction[e]) <= tolerances[e]
        if done:
            break
        fallen = _PATIENCE**2 * squares
        before, slope_before, value_before = x.copy(), slope.copy(), value
        outside = False
        while n_products < most_products:
            hessian_product(covariance, rows, columns, units, direction, room, product)
            n_products += 1
            curvature = np.dot(direction, product)
            if curvature <= 0.0:  # round-off: what there is to gain has been gained
                exhausted = True
                break
            length = squares / curvature
            longest = length
            if not patient:
                for e in range(m):
                    if x[e] + length * direction[e] < lower[e]:
                        longest = min(longest, (lower[e] - x[e]) / direction[e])
            if longest < length:
                projected = np.maximum(x + length * direction, lower)
                hessian_product(covariance, rows, columns, units, projected, room, product)
                n_products += 1
                new_value = np.dot(projected, linear) + 0.5 * np.dot(projected, product)
                if new_value >= value:
                    projected = np.maximum(x + longest * direction, lower)
                    hessian_product(covariance, rows, columns, units, projected, room, product)
                    n_products += 1
                    new_value = np.dot(projected, linear) + 0.5 * np.dot(projected, product)
                x, slope, value = projected, linear + product, new_value
                break
            new_squares, wanting, done, outside = 0.0, 0.0, True, False
            for e in range(m):
                x[e] += length * direction[e]
                slope[e] += length * product[e]
                outside = outside or x[e] < lower[e]
                if not held[e]:
                    new_squares += slope[e] ** 2
                    done = done and abs(slope[e]) <= tolerances[e]
                elif slope[e] < 0.0:
                    wanting += slope[e] ** 2
            value -= 0.5 * length * squares
            if done or wanting > new_squares or (outside and new_squares < fallen):
                break
            turn = new_squares / squares
            squares = new_squares
            for e in range(m):
                direction[e] = 0.0 if held[e] else turn * direction[e] - slope[e]
        if outside:
            x = np.maximum(x, lower)
            hessian_product(covariance, rows, columns, units, x, room, product)
            n_products += 1
            slope = linear + product
            value = np.dot(x, linear) + 0.5 * np.dot(x, product)
            if value >= value_before:
                x, slope, value, patient = before, slope_before, value_before, False
                exhausted = False
    return x, slope - linear
