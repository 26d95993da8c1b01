# SPDX-License-Identifier: MIT OR Apache-2.0
"""The statistics of scoreboards and scores: paired differences of logarithms, with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean."""
    return math.fsum(values) / len(values)


def percentile(values: Sequence[float], percent: float) -> float:
    """A percentile by linear interpolation."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def half_width(values: Sequence[float], level: float) -> float:
    """Half the width of Student's interval of the mean; infinite for one value."""
    count = len(values)
    if count < 2:
        return math.inf
    centre = mean(values)
    squares = math.fsum((value - centre) ** 2 for value in values)
    deviation = math.sqrt(squares / (count - 1))
    # Equal differences have rounding errors, which are no spread.
    if deviation < 1e-12:
        return 0.0
    return t_quantile(0.5 + level / 2, count - 1) * deviation / math.sqrt(count)


@lru_cache(maxsize=1024)
def t_quantile(p: float, degrees: int) -> float:
    """The quantile of Student's t distribution for 0.5 <= p < 1, by bisection."""
    low, high = 0.0, 1.0
    while t_cumulative(high, degrees) < p:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if t_cumulative(middle, degrees) < p:
            low = middle
        else:
            high = middle
    return high


def t_cumulative(t: float, degrees: int) -> float:
    """The distribution function for t >= 0 (Abramowitz and Stegun 26.7.1)."""
    x = degrees / (degrees + t * t)
    return 1 - _incomplete_beta(x, degrees / 2, 0.5) / 2


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function (Abramowitz and Stegun 26.5.8)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(front + a * math.log(x) + b * math.log1p(-x)) / a
    # Lentz's method for the continued fraction.
    tiny = 1e-300
    value, c, d = 1.0, 1.0, 0.0
    for step in range(400):
        m = step // 2
        if step == 0:
            part = 1.0
        elif step % 2 == 0:
            part = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            part = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + part * d or tiny)
        c = 1 + part / c or tiny
        value *= c * d
        if abs(1 - c * d) < 1e-15:
            break
    return front * (value - 1)


def kendall_tau(a: Sequence[float], b: Sequence[float]) -> float:
    """Kendall's tau-b of two rankings: 1 if they agree, -1 if one is the reverse of the other."""
    pairs = [(i, j) for i in range(len(a)) for j in range(i)]
    signs = [(_sign(a[i] - a[j]), _sign(b[i] - b[j])) for i, j in pairs]
    untied_a = sum(1 for one, _ in signs if one)
    untied_b = sum(1 for _, other in signs if other)
    if not untied_a or not untied_b:
        return math.nan
    return sum(one * other for one, other in signs) / math.sqrt(untied_a * untied_b)


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
