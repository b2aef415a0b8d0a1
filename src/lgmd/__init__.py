"""Matrix decomposition that learns the graphs behind rows and columns.

From a table that is noisy and full of gaps, one ``fit`` gives low-rank factors, the denoised and completed table, and
sparse graphs over rows and over columns. See :class:`LGMD`.
"""

from lgmd import datasets, graphs, metrics
from lgmd.estimators import DGRMD, GPCA, LGMD, PMF, LGMDImputer

__all__ = ["DGRMD", "GPCA", "LGMD", "PMF", "LGMDImputer", "datasets", "graphs", "metrics"]
__version__ = "0.1.0"
