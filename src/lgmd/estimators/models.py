"""The models: LGMD of the paper, and its two special cases."""

from __future__ import annotations

from typing import Any

from lgmd._validation import check_integer
from lgmd.estimators.factorization import Factorization
from lgmd.graphs import GraphLearner, KNNGraph, NoGraph, as_learner
from lgmd.solver import Schedule

__all__ = ["DGRMD", "LGMD", "PMF", "LGMDPlus"]


class LGMD(Factorization):
    r"""Matrix decomposition with graphs over rows and columns that are learned with it.

    The table is :math:`Y = m + a 1^T + 1 b^T + X W^T + E`, with :math:`X \sim MN(0, A^{-1}, G_x)`,
    :math:`W \sim MN(0, B^{-1}, G_w)` and Gaussian or Student noise.

    ``inference="variational"`` finds Gaussian posteriors of factors and intercepts, and with them an error bar for
    every entry; noise, prior variances and the rank are learned, and nothing is left to tune. ``inference="map"`` is
    the paper's: it minimises, over factors X and W, intercepts a and b and graphs A and B,

    .. math::
        \tfrac12 \|P_O(Y - a 1^T - 1 b^T - XW^T)\|^2
        + \tfrac{\lambda_1}{2} (\mathrm{tr}\, X^T A X - k \ln|A|)
        + \tfrac{\lambda_2}{2} (\mathrm{tr}\, W^T B W - k \ln|B|)

    plus the sparsity terms of the graphs and the ridge of the intercepts, for the table at unit scale. With no graphs
    this is :class:`PMF`. An iteration costs ``O(observed entries * k^2)`` with gaps and ``O(n p k)`` without.

    Parameters
    ----------
    n_components : int, default=20
        Most columns of the factors, at most the number of rows and of columns; the default is no more than that in a
        small table. Variational inference drops those that the data does not ask for.
    inference : {"variational", "map"}, default="variational"
        Whether to find the posterior of the factors or the most probable ones.
    sample_graph, feature_graph : str, GraphLearner or matrix, default="evidence"
        The graph over rows and over columns: ``"evidence"`` (edges that the data shows, none where it shows none),
        ``"laplacian"``, ``"glasso"``, ``"threshold"``, ``"knn"``, ``"none"``, a learner from :mod:`lgmd.graphs`, or a
        matrix (precision, Laplacian or adjacency), which stays fixed. :class:`~lgmd.graphs.PriorGraph` learns how far
        a given graph is to be trusted.
    noise : {"homoscedastic", "samples", "features"}, default="homoscedastic"
        Whether all entries have the same noise variance, or each row or each column its own; how alike these are is
        learned (``posterior_.noise.prior``). Variational only.
    likelihood : {"gaussian", "student"}, default="gaussian"
        ``"student"`` lets outliers count little: a Student distribution whose degrees of freedom are learned, and a
        share of gross errors besides. Not for tables of which most entries are equal: all others then count as gross
        errors. Variational only.
    prior : {"auto", "columns", "shared", "falling"}, default="auto"
        Each factor has a prior variance of its own, which finds the rank. Or all factors of a side share one, as in the
        paper, which keeps weak ones alive where all are about as strong. Or prior variances fall as one over the
        factor's number, which does so in tables with gaps where each factor is weaker than the last. ``"auto"`` takes
        what foresees held-out entries better, or of the first two what is estimated to be nearer to the truth in a
        complete table, where there are up to a million entries; larger tables have a variance a factor. Where held-out
        entries want it, it also believes in less noise than there seems to be, or holds the noise at a level instead of
        learning it. Variational only.
    covariance : {"auto", "full", "diagonal"}, default="auto"
        With gaps, whether each row and column has a covariance matrix over its factors or only variances. ``"auto"`` is
        full while the matrices of all rows and columns hold no more than 300 million numbers. Rows that a graph joins
        need a matrix each while they are updated in any case. Variational only.
    sample_penalty, feature_penalty : float, default=1.0
        Strength of the two priors, for data at unit scale: the table is divided by ``scale_``, its standard deviation
        about the intercepts, so that a penalty means the same for degrees and for millidegrees. MAP only.
    intercept : {"none", "global", "samples", "features", "both"}, default="both"
        Which means the model has: none, one overall, and one for each row, each column or both.
    intercept_penalty : float, default=1.0
        Ridge on the means of rows and columns: as if each had been seen so many times more at the overall mean. MAP
        only; variational inference learns the prior variances of the means.
    update : {"auto", "sylvester", "cg", "paper"} or FactorUpdate, default="auto"
        How the factors are updated. ``"auto"`` is exact: a Sylvester equation for a complete table, conjugate gradients
        with gaps. ``"paper"`` is the update as printed in the paper, which can diverge. MAP only.
    graph_updates : int, default=3
        Most times the graphs are learned from the factors; once where that shows nothing, and never more often than a
        learner finds worth it (``rounds``: three times, evidence graphs twice, given ones once), since graphs that are
        learned again and again confirm themselves. Variational inference starts the factors anew under the first ones.
    allow_empty : bool, default=False
        Whether rows and columns may have no observed entry; their factors then come from the graph alone.
    max_iter : int, default=200
        Most iterations; one updates both factors once.
    tol : float, default=1e-5
        Change at which to stop: of the objective relative to its size (MAP), or of the bound in nats an entry.
    random_state : int, RandomState or None, default=None
        For the randomised decomposition that large tables start from.

    Attributes
    ----------
    sample_factors_ : ndarray of shape (n, rank_)
        Posterior means, or the most probable values.
    feature_factors_ : ndarray of shape (p, rank_)
    sample_graph_, feature_graph_ : csr_array of shape (n, n) and (p, p)
        Precision matrices.
    sample_strength_, feature_strength_ : float
        Of graphs whose strength is learned (``PriorGraph``, ``EvidenceGraph``) the ratio ``b / a`` in ``a I + b L``,
        zero where there is no edge; NaN for other learners.
    intercept_, sample_intercepts_, feature_intercepts_ : float, ndarray of shape (n,) and of shape (p,)
    noise_variance_ : float
        Learned, or held in thin tables, on average over the table; for MAP the mean squared residual of the observed
        entries. What held-out entries vary beyond it and the posterior is in ``posterior_.noise.unexplained``. Under
        the Student likelihood the squared scale, which outliers do not raise.
    noise_std_ : float
        Its root.
    sample_noise_variance_, feature_noise_variance_ : ndarray of shape (n,) and (p,)
        Noise variance of each row and each column, on average over the other side. Variational only.
    rank_ : int
        Columns of the factors: ``n_components`` less those that died. One always stays.
    posterior_ : TablePosterior
        The posteriors of both sides at unit scale. Variational only.
    scale_ : float
    history_ : History
        ``history_.objective`` holds the objective, or the negative evidence lower bound, after each iteration, for data
        at unit scale.
    n_iter_ : int
    converged_ : bool
    status_ : {"converged", "max_iter", "stopped", "interrupted"}
    update_ : str
        Which update was taken, and why.
    n_features_in_ : int
    feature_names_in_, sample_names_in_ : ndarray
        Column and row names, where the table had them.
    feature_labels_, sample_labels_ : ndarray
        Labels of a DataFrame that are no names: columns that are not text, rows that are numbered. Tables that have
        them in another order are refused.

    Examples
    --------
    >>> from lgmd import LGMD, datasets
    >>> data = datasets.make_matrix_normal(60, 40, rank=4, sample_graph="blocks", missing=0.3, random_state=0)
    >>> model = LGMD(n_components=10).fit(data.observed)
    >>> table, bars = model.reconstruct(return_std=True)
    >>> table.shape, bars.shape
    ((60, 40), (60, 40))
    >>> model.predict([0, 1], [2, 3]).shape
    (2,)
    """

    def __init__(
        self,
        n_components: int = 20,
        inference: str = "variational",
        sample_graph: Any = "evidence",
        feature_graph: Any = "evidence",
        noise: str = "homoscedastic",
        likelihood: str = "gaussian",
        prior: str = "auto",
        covariance: str = "auto",
        sample_penalty: float = 1.0,
        feature_penalty: float = 1.0,
        intercept: str = "both",
        intercept_penalty: float = 1.0,
        update: Any = "auto",
        graph_updates: int = 3,
        allow_empty: bool = False,
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_components=n_components,
            inference=inference,
            noise=noise,
            likelihood=likelihood,
            prior=prior,
            covariance=covariance,
            sample_penalty=sample_penalty,
            feature_penalty=feature_penalty,
            intercept=intercept,
            intercept_penalty=intercept_penalty,
            update=update,
            allow_empty=allow_empty,
            max_iter=max_iter,
            tol=tol,
            random_state=random_state,
        )
        self.sample_graph = sample_graph
        self.feature_graph = feature_graph
        self.graph_updates = graph_updates

    def _learners(self) -> tuple[GraphLearner, GraphLearner]:
        return as_learner(self.sample_graph, "sample_graph"), as_learner(self.feature_graph, "feature_graph")

    def _schedule(self) -> Schedule:
        updates = check_integer(self.graph_updates, "graph_updates", minimum=0)
        return Schedule(max_iter=self.max_iter, tol=self.tol, graph_updates=updates)


class LGMDPlus(LGMD):
    """LGMD+ of the paper: :class:`LGMD` whose graphs have non-negative weights.

    The precision of each side is ``L + c I``, with L the Laplacian of a graph, learned by
    :class:`~lgmd.graphs.LaplacianGraph`. By variational inference a side has no graph where entries of the table speak
    against it. Parameters and attributes are those of :class:`LGMD`.
    """

    def __init__(
        self,
        n_components: int = 20,
        inference: str = "variational",
        sample_graph: Any = "laplacian",
        feature_graph: Any = "laplacian",
        noise: str = "homoscedastic",
        likelihood: str = "gaussian",
        prior: str = "auto",
        covariance: str = "auto",
        sample_penalty: float = 1.0,
        feature_penalty: float = 1.0,
        intercept: str = "both",
        intercept_penalty: float = 1.0,
        update: Any = "auto",
        graph_updates: int = 3,
        allow_empty: bool = False,
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_components=n_components,
            inference=inference,
            sample_graph=sample_graph,
            feature_graph=feature_graph,
            noise=noise,
            likelihood=likelihood,
            prior=prior,
            covariance=covariance,
            sample_penalty=sample_penalty,
            feature_penalty=feature_penalty,
            intercept=intercept,
            intercept_penalty=intercept_penalty,
            update=update,
            graph_updates=graph_updates,
            allow_empty=allow_empty,
            max_iter=max_iter,
            tol=tol,
            random_state=random_state,
        )


class PMF(Factorization):
    r"""Probabilistic matrix factorisation: :class:`LGMD` without graphs.

    Minimises :math:`\tfrac12 \|P_O(Y - a 1^T - 1 b^T - XW^T)\|^2 + \tfrac{\lambda_1}{2} \|X\|^2
    + \tfrac{\lambda_2}{2} \|W\|^2` plus the ridge of the intercepts: alternating ridge regression. With
    ``inference="variational"`` it is Bayesian. Parameters and attributes are those of :class:`LGMD`, less the graphs;
    the default is ``inference="map"``, as published.
    """

    def _learners(self) -> tuple[GraphLearner, GraphLearner]:
        return NoGraph(), NoGraph()


class DGRMD(Factorization):
    """Dual graph-regularised matrix decomposition: :class:`LGMD` with nearest-neighbour graphs of the data.

    The graphs are made once from the table and stay; see :class:`~lgmd.graphs.KNNGraph`. The other parameters and
    attributes are those of :class:`LGMD`.

    Parameters
    ----------
    n_neighbors : int, default=5
        Neighbours that each row, and each column, is joined to.
    ridge : float, default=0.1
        Added to the Laplacians.
    """

    def __init__(
        self,
        n_components: int = 20,
        inference: str = "map",
        n_neighbors: int = 5,
        ridge: float = 0.1,
        noise: str = "homoscedastic",
        likelihood: str = "gaussian",
        prior: str = "auto",
        covariance: str = "auto",
        sample_penalty: float = 1.0,
        feature_penalty: float = 1.0,
        intercept: str = "both",
        intercept_penalty: float = 1.0,
        update: Any = "auto",
        allow_empty: bool = False,
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_components=n_components,
            inference=inference,
            noise=noise,
            likelihood=likelihood,
            prior=prior,
            covariance=covariance,
            sample_penalty=sample_penalty,
            feature_penalty=feature_penalty,
            intercept=intercept,
            intercept_penalty=intercept_penalty,
            update=update,
            allow_empty=allow_empty,
            max_iter=max_iter,
            tol=tol,
            random_state=random_state,
        )
        self.n_neighbors = n_neighbors
        self.ridge = ridge

    def _learners(self) -> tuple[GraphLearner, GraphLearner]:
        learner = KNNGraph(self.n_neighbors, self.ridge)
        learner.validate()
        return learner, learner
