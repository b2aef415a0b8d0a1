"""A fitted model as one HTML page that works offline: summarise, then render.

:func:`write_report` is what people call. :func:`summarize` makes the plain data behind the page, which is where
everything is decided that can be tested without a browser: ``decomposition`` reads any model the same way, ``axes`` and
``blocks`` shrink tables of any size to a picture's, ``networks`` and ``layout`` place the graphs, ``embeddings`` has
points and loadings, ``reproduction`` the settings. ``rendering`` puts the data into the template beside it, whose
JavaScript only draws.
"""

from lgmd.report.held_out import HeldOutScores
from lgmd.report.rendering import render, write_report
from lgmd.report.summary import ReportData, summarize

__all__ = ["HeldOutScores", "ReportData", "render", "summarize", "write_report"]
