"""The alternation: what is minimised (``problem``, ``objective``), how (``loop``), and what is kept of it.

Read ``loop`` first: it is Algorithm 1 of the paper on one screen.
"""

from lgmd.solver.checkpoint import Checkpoint
from lgmd.solver.convergence import Status
from lgmd.solver.history import History, Record
from lgmd.solver.loop import Callback, Progress, Schedule, Solution, solve
from lgmd.solver.objective import objective_terms
from lgmd.solver.problem import Problem, State, initial_state

__all__ = [
    "Callback",
    "Checkpoint",
    "History",
    "Problem",
    "Progress",
    "Record",
    "Schedule",
    "Solution",
    "State",
    "Status",
    "initial_state",
    "objective_terms",
    "solve",
]
