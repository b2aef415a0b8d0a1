"""Each form of a covariance against the (n d, n d) matrix that it stands for."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

from lgmd.factors import DiagonalCovariances, RowCovariances, SpectralCovariance, covariance
from lgmd.linalg.packed import pack, unpack

N, D = 7, 3


def positive(rng, count, d=D, rank=None):
    roots = rng.standard_normal((count, d, d if rank is None else rank))
    return roots @ roots.transpose(0, 2, 1)


def block_diagonal(blocks):
    return scipy.linalg.block_diag(*blocks).reshape(len(blocks), blocks.shape[1], len(blocks), blocks.shape[1])


def shared(rng, rank=None):
    block = positive(rng, 1, rank=rank)
    return RowCovariances(pack(block), N), block_diagonal(np.repeat(block, N, axis=0))


def one_a_row(rng, rank=None):
    blocks = positive(rng, N, rank=rank)
    return RowCovariances(pack(blocks), N), block_diagonal(blocks)


def with_a_pending_basis(rng, rank=None):
    blocks, basis = positive(rng, N, rank=rank), rng.standard_normal((D, D))
    return RowCovariances(pack(blocks), N, basis), block_diagonal(np.stack([basis.T @ c @ basis for c in blocks]))


def shared_with_a_pending_basis(rng, rank=None):
    block, basis = positive(rng, 1, rank=rank), rng.standard_normal((D, D))
    return RowCovariances(pack(block), N, basis), block_diagonal(np.repeat(basis.T @ block @ basis, N, axis=0))


def diagonal(rng, rank=None):
    variances = rng.uniform(0.2, 2.0, (N, D))
    if rank is not None:
        variances[:, rank:] = 0.0
    return DiagonalCovariances(variances), np.diag(variances.ravel()).reshape(N, D, N, D)


def spectral(rng, rank=None):
    _, vectors = np.linalg.eigh(graph().toarray())
    blocks = positive(rng, N, rank=rank)
    dense = sum(np.kron(np.outer(u, u), block) for u, block in zip(vectors.T, blocks, strict=True))
    return SpectralCovariance(vectors, blocks), dense.reshape(N, D, N, D)


FORMS = [shared, one_a_row, with_a_pending_basis, shared_with_a_pending_basis, diagonal, spectral]


def graph(seed=0):
    """A connected graph, whose eigenvalues are all different."""
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.uniform(-1, 1, (N, N)), 1)
    return scipy.sparse.csr_array(weights + weights.T + np.diag(rng.uniform(5, 8, N)))


def close(found, expected):
    """Sums of some twenty numbers below ten hold to this."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("form", FORMS)
def test_each_row_by_itself_is_a_block_on_the_diagonal(form, rng):
    found, dense = form(rng)
    assert found.order == D
    for rows in (np.arange(N), np.array([5, 0, 5, 2]), np.empty(0, dtype=np.int64)):
        close(unpack(found.packed_rows(rows)), dense[rows, :, rows, :])


@pytest.mark.parametrize("form", FORMS)
def test_the_total_is_the_weighted_sum_of_the_blocks(form, rng):
    found, dense = form(rng)
    for weights in (np.ones(N), rng.uniform(0.5, 2.0, N)):
        close(found.total(weights), np.einsum("i,iaib->ab", weights, dense))


@pytest.mark.parametrize("form", FORMS)
def test_the_total_over_the_graph_meets_every_pair_of_rows(form, rng):
    found, dense = form(rng)
    close(found.graph_total(graph()), np.einsum("ij,iajb->ab", graph().toarray(), dense))


@pytest.mark.parametrize("form", FORMS)
def test_traces_are_weighted_sums_of_each_rows_variances(form, rng):
    found, dense = form(rng)
    weights = rng.uniform(0.0, 2.0, D)
    close(found.weighted_traces(weights), np.einsum("iaia,a->i", dense, weights))


@pytest.mark.parametrize("form", FORMS)
def test_between_is_the_block_of_a_pair(form, rng):
    found, dense = form(rng)
    rows, others = np.array([0, 3, 3, 6, 2]), np.array([1, 3, 0, 5, 2])
    close(found.between(rows, others), dense[rows, :, others, :])
    if form is spectral:
        # Rows are not independent here.
        assert np.abs(found.between(np.array([0]), np.array([1]))).max() > 0.01


def test_sums_between_rows_weigh_the_diagonal_of_their_block(rng):
    found, dense = spectral(rng)
    rows, others = np.array([0, 3, 3, 6, 2]), np.array([1, 3, 0, 5, 2])
    weights = rng.uniform(0.0, 2.0, D)
    close(found.between_sums(rows, others, weights), np.einsum("maa,a->m", dense[rows, :, others, :], weights))


@pytest.mark.parametrize("form", FORMS)
def test_transformed_is_the_covariance_of_the_rows_times_the_change(form, rng):
    found, dense = form(rng)
    changes = [rng.standard_normal((D, D)), rng.standard_normal((D, D))]
    if form is diagonal:
        changes = [np.diag([2.0, -1.0, 0.5])[:, [1, 0, 2]], np.diag([1.0, 3.0, -1.0])]
    for change in changes:
        found = found.transformed(change)
        dense = np.einsum("ac,iajb,bd->icjd", change, dense, change)
    assert found.order == D
    everything = np.arange(N)
    close(unpack(found.packed_rows(everything)), dense[everything, :, everything, :])
    close(found.total(np.ones(N)), np.einsum("iaib->ab", dense))
    close(found.graph_total(graph()), np.einsum("ij,iajb->ab", graph().toarray(), dense))
    close(found.between(np.array([0, 4]), np.array([1, 4])), dense[[0, 4], :, [1, 4], :])
    close(found.weighted_traces(np.ones(D)), np.einsum("iaia->i", dense))


def test_what_would_not_stay_diagonal_is_refused(rng):
    found, _ = diagonal(rng)
    with pytest.raises(ValueError, match="scales or reorders"):
        found.transformed(rng.standard_normal((D, D)))
    mixing = np.eye(D)
    mixing[0, 2] = -0.3
    with pytest.raises(ValueError, match="scales or reorders"):
        found.transformed(mixing)
    assert not found.rotates
    assert all(form(rng)[0].rotates for form in FORMS if form is not diagonal)


@pytest.mark.parametrize("form", FORMS)
def test_some_of_the_numbers_may_be_kept(form, rng):
    found, dense = form(rng)
    for columns in (np.array([0, 2]), np.array([1])):
        kept = found.kept(columns)
        assert kept.order == len(columns)
        everything = np.arange(N)
        wanted = dense[:, columns][:, :, :, columns]
        close(unpack(kept.packed_rows(everything)), wanted[everything, :, everything, :])
        close(kept.total(np.ones(N)), np.einsum("iaib->ab", wanted))
        close(kept.graph_total(graph()), np.einsum("ij,iajb->ab", graph().toarray(), wanted))
        close(kept.weighted_traces(np.ones(len(columns))), np.einsum("iaia->i", wanted))


@pytest.mark.parametrize("form", [with_a_pending_basis, shared_with_a_pending_basis])
def test_a_pending_basis_can_be_carried_out(form, rng):
    found, dense = form(rng)
    applied = found.applied()
    assert applied.basis is None
    assert applied.is_shared == found.is_shared
    everything = np.arange(N)
    close(unpack(applied.packed_rows(everything)), dense[everything, :, everything, :])
    assert applied.applied() is applied
    kept = found.kept(np.array([0, 2])).applied()
    assert kept.order == 2
    close(unpack(kept.packed_rows(everything)), dense[everything, :, everything, :][:, [0, 2]][:, :, [0, 2]])


@pytest.mark.parametrize("form", [shared, one_a_row, with_a_pending_basis, diagonal])
def test_single_precision_stays_single_and_sums_stay_close(form, rng):
    found, dense = form(rng)
    if form is diagonal:
        single = DiagonalCovariances(found.variances.astype(np.float32))
    else:
        single = RowCovariances(found.packed.astype(np.float32), N, found.basis)
    everything = np.arange(N)
    assert single.packed_rows(everything).dtype == np.float32
    # Rounded storage, and in another basis a sum of nine products: some units in the last place of the largest.
    tolerance = {"rtol": 0, "atol": 32 * float(np.finfo(np.float32).eps) * np.abs(dense).max()}
    np.testing.assert_allclose(unpack(single.packed_rows(everything)), dense[everything, :, everything, :], **tolerance)
    np.testing.assert_allclose(single.total(np.ones(N)), np.einsum("iaib->ab", dense), **tolerance)
    np.testing.assert_allclose(single.weighted_traces(np.ones(D)), np.einsum("iaia->i", dense), **tolerance)


@pytest.mark.parametrize("form", FORMS)
def test_rows_that_are_taken_in_blocks_are_the_same(form, rng, monkeypatch):
    found, _ = form(rng)
    weights, change = rng.uniform(0.5, 2.0, N), np.diag([1.0, 2.0, 3.0])

    def everything():
        moved = found.transformed(change)
        return (
            moved.packed_rows(np.arange(N)),
            moved.total(weights),
            moved.weighted_traces(weights[:D]),
        )

    whole = everything()
    monkeypatch.setattr(covariance, "_BLOCK", 2)
    for some, wanted in zip(everything(), whole, strict=True):
        np.testing.assert_allclose(some, wanted, rtol=1e-12, atol=1e-12)


def test_more_rows_than_a_block_are_summed_once_each(monkeypatch, rng):
    monkeypatch.setattr(covariance, "_BLOCK", 1)  # sums are then taken 64 rows at a time
    blocks = positive(rng, 200)
    weights = rng.uniform(0.5, 2.0, 200)
    # Two hundred numbers below ten.
    found = RowCovariances(pack(blocks), 200).total(weights)
    np.testing.assert_allclose(found, np.einsum("i,iab->ab", weights, blocks), rtol=1e-12)


@pytest.mark.parametrize("rank", [None, 1])
@pytest.mark.parametrize("form", FORMS)
def test_draws_have_mean_zero_and_the_covariance(form, rank, rng, monkeypatch):
    monkeypatch.setattr(covariance, "_BLOCK", 3)  # two blocks of rows, and a row that is left
    found, dense = form(rng, rank)
    joint = dense.reshape(N * D, N * D)
    n_draws = 20_000
    draws = found.draw(n_draws, np.random.default_rng(1), np.arange(N))
    assert draws.shape == (n_draws, N, D)
    flat = draws.reshape(n_draws, N * D)
    variances = np.diag(joint)
    # A mean of n Gaussian numbers has variance C_ii / n, a mean of products C_ii C_jj + C_ij^2 over n. Five standard
    # errors are met by all of 21 means and 231 products but once in seven thousand seeds.
    rounding = 1e-12
    assert np.all(np.abs(flat.mean(axis=0)) <= 5 * np.sqrt(variances / n_draws) + rounding)
    errors = np.sqrt((np.outer(variances, variances) + joint**2) / n_draws)
    deviations = np.abs(flat.T @ flat / n_draws - joint)
    assert np.all(deviations <= 5 * errors + rounding)
    # As large as they should be, too: the draws are not made to fit.
    seen = errors > 1e-6
    assert 0.3 < np.sqrt(np.mean((deviations[seen] / errors[seen]) ** 2)) < 2.0
    if rank is not None:
        values, vectors = np.linalg.eigh(joint)
        assert values[0] < 1e-10 < values[-1]
        # Round-off of an eigenvalue becomes its root in a draw.
        assert np.abs(flat @ vectors[:, values < 1e-10]).max() < 1e-6


@pytest.mark.parametrize("form", FORMS)
def test_draws_are_the_same_for_the_same_generator(form, rng):
    found, _ = form(rng)
    first, again, other = (found.draw(2, np.random.default_rng(seed), np.arange(N)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.1


def test_a_single_row_can_be_drawn(rng):
    block = positive(rng, 1, rank=2)
    draws = RowCovariances(pack(block), 1).draw(20_000, np.random.default_rng(2), np.arange(1))
    errors = np.sqrt((np.outer(np.diag(block[0]), np.diag(block[0])) + block[0] ** 2) / 20_000)
    assert np.all(np.abs(draws[:, 0].T @ draws[:, 0] / 20_000 - block[0]) <= 5 * errors)


def test_the_spectral_total_over_another_graph_is_that_of_the_other_graph(rng):
    found, dense = spectral(rng)
    other = graph(seed=1)
    close(found.graph_total(other), np.einsum("ij,iajb->ab", other.toarray(), dense))
