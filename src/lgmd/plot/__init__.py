"""Pictures of fitted models on matplotlib axes.

Every function draws on the axes it is given and returns them. Without ``ax`` it makes a figure of its own, which no
window and no pyplot state knows of: save it with ``ax.figure.savefig("picture.png")``, or end a notebook cell with
``ax.figure``. Nothing is shown and no setting of matplotlib is changed.

>>> from lgmd import LGMD, datasets, plot
>>> data = datasets.make_matrix_normal(30, 20, rank=2, sample_graph="blocks", random_state=0)
>>> model = LGMD(n_components=3).fit(data.observed)
>>> ax = plot.graph(model)
>>> ax.figure.savefig("graph.png")  # doctest: +SKIP
"""

from lgmd.plot.error_bars import calibration
from lgmd.plot.heat_maps import reconstruction
from lgmd.plot.iterations import convergence
from lgmd.plot.networks import graph
from lgmd.plot.points import embedding

__all__ = ["calibration", "convergence", "embedding", "graph", "reconstruction"]
