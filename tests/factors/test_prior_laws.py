"""What ties prior variances to each other: the likeliest ones, and the basis that suits them."""

import numpy as np
import pytest
import scipy.optimize

from lgmd.factors import FALLING, LAWS

laws = pytest.mark.parametrize("law", LAWS.values(), ids=list(LAWS))
TIED = [law for law in LAWS.values() if law.is_tied]


def cost(variances, moments):
    """Twice the expected negative log density of a row, but for a constant."""
    return float(np.sum(np.log(variances) + moments / variances))


def falling_moments(seed, k=12, power=1.5):
    rng = np.random.default_rng(seed)
    return np.arange(1.0, k + 1) ** -power * rng.gamma(3.0, size=k)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("law", TIED, ids=lambda law: law.name)
def test_the_level_is_the_likeliest_that_a_search_finds(seed, law):
    moments = falling_moments(seed)
    shape = law.variances(np.ones_like(moments))
    found = scipy.optimize.minimize_scalar(lambda log: cost(np.exp(log) * shape, moments))
    np.testing.assert_allclose(law.variances(moments), np.exp(found.x) * shape, rtol=1e-6)


def test_variances_that_fall_are_found_as_they_are():
    variances = 3.0 / np.arange(1.0, 21)
    np.testing.assert_allclose(LAWS[FALLING].variances(variances), variances, rtol=1e-14)


@laws
@pytest.mark.parametrize("unit", [1e-30, 1e-6, 1e6, 1e30])
def test_units_do_not_matter(law, unit):
    moments = falling_moments(3)
    np.testing.assert_allclose(law.variances(unit * moments), unit * law.variances(moments), rtol=1e-7)


@laws
def test_each_law_keeps_the_sum_of_what_it_explains(law):
    """At the likeliest level ``sum m / g`` is the number of factors."""
    moments = falling_moments(5)
    assert np.sum(moments / law.variances(moments)) == pytest.approx(len(moments))


def test_variances_of_their_own_are_the_likeliest_and_the_right_tie_is_the_next():
    for seed in range(5):
        moments = falling_moments(seed, power=1.0)
        costs = [cost(LAWS[name].variances(moments), moments) for name in ("columns", "falling", "shared")]
        assert costs == sorted(costs)


@pytest.mark.parametrize("shape", [(20, 35), (30, 30), (400, 12)], ids=str)
@laws
def test_a_change_of_basis_never_loses(law, shape):
    """What the bound has of factors and prior variances: their log density, and the log determinant of the change."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        factors = [rng.standard_normal((n, 6)) * rng.uniform(0.1, 3.0, 6) for n in shape]
        moments = tuple(factor.T @ factor for factor in factors)
        variances = tuple(law.variances(np.diag(m) / n) for m, n in zip(moments, shape, strict=True))

        def loss(moments, variances):
            pairs = zip(shape, moments, variances, strict=True)
            return sum(n * np.sum(np.log(g)) + np.sum(np.diag(m) / g) for n, m, g in pairs)

        S, inverse = law.balancing(moments, variances, shape)
        np.testing.assert_allclose(S.T @ inverse, np.eye(6), atol=1e-8)
        after = S.T @ moments[0] @ S, inverse.T @ moments[1] @ inverse
        following = tuple(law.variances(np.diag(m) / n) for m, n in zip(after, shape, strict=True))
        entropies = -2 * (shape[0] - shape[1]) * np.linalg.slogdet(S)[1]
        assert loss(after, following) + entropies <= loss(moments, variances) + 1e-8


@pytest.mark.parametrize("law", TIED, ids=lambda law: law.name)
def test_both_sides_of_a_tied_law_are_equally_large(law, rng):
    shape = (40, 15)
    factors = [rng.standard_normal((n, 5)) * 3.0 ** -np.arange(5) for n in shape]
    moments = tuple(factor.T @ factor for factor in factors)
    variances = tuple(law.variances(np.diag(m) / n) for m, n in zip(moments, shape, strict=True))
    S, inverse = law.balancing(moments, variances, shape)
    sizes = [
        np.log(n * law.variances(np.diag(basis.T @ m @ basis) / n)).mean()
        for n, m, basis in zip(shape, moments, (S, inverse), strict=True)
    ]
    assert sizes[0] == pytest.approx(sizes[1])


@pytest.mark.parametrize("law", TIED, ids=lambda law: law.name)
def test_singular_moments_have_no_basis(law):
    dead = np.diag([1.0, 1.0, 0.0])
    ones = np.ones(3)
    assert law.balancing((dead, np.eye(3)), (ones, ones), (10, 10)) is None
