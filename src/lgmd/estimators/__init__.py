"""The estimators: parameters, validation and attributes; the maths is below.

``factorization`` holds what all of them share, ``models`` the models themselves, ``imputer`` and ``gpca`` the two
other shapes, ``persistence`` the files.
"""

from lgmd.estimators.gpca import GPCA
from lgmd.estimators.imputer import LGMDImputer
from lgmd.estimators.models import DGRMD, LGMD, PMF, LGMDPlus

__all__ = ["DGRMD", "GPCA", "LGMD", "PMF", "LGMDImputer", "LGMDPlus"]
