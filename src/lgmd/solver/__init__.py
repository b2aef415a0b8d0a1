"""The alternation: what is minimised (``map``, ``variational``), how (``loop``), and what is kept of it.

Read ``loop`` first: it is Algorithm 1 of the paper on one screen.
"""

from lgmd.solver.checkpoint import Checkpoint
from lgmd.solver.convergence import Status
from lgmd.solver.history import History, Record
from lgmd.solver.loop import Callback, Progress, Schedule, Solution, solve
from lgmd.solver.map import MapInference, MapState
from lgmd.solver.problem import Inference, State
from lgmd.solver.variational import VariationalInference, VariationalState

__all__ = [
    "Callback",
    "Checkpoint",
    "History",
    "Inference",
    "MapInference",
    "MapState",
    "Progress",
    "Record",
    "Schedule",
    "Solution",
    "State",
    "Status",
    "VariationalInference",
    "VariationalState",
    "solve",
]
