"""``lgmd doctor``: is everything there that a fit needs, and do its numbers come out right?"""

from __future__ import annotations

import typer

from lgmd.cli._errors import FAILURE
from lgmd.cli._groups import with_groups
from lgmd.cli._talk import Talk

__all__ = ["doctor"]


@with_groups
def doctor(talk: Talk) -> None:
    """Check the installation: versions, threads, memory, optional packages, data sets, and a tiny fit.

    The exit code is 1 if something is wrong.
    """
    from lgmd.cli._checkup import check_up

    findings = check_up()
    wrong = [finding for finding in findings if finding.is_wrong]
    width = max(len(finding.subject) for finding in findings) + 2
    lines = [f"{'!' if each.is_wrong else ' '} {each.subject + ':':{width}}{each.text}" for each in findings]
    ending = "All is well." if not wrong else f"Wrong: {', '.join(finding.subject for finding in wrong)}."
    talk.outcome(
        [*lines, ending],
        outcome="well" if not wrong else "wrong",
        findings={finding.subject: finding.text for finding in findings},
        wrong=[finding.subject for finding in wrong],
    )
    if wrong:
        raise typer.Exit(FAILURE)
