"""Messages of the library in the words of the command line: ``header=False`` is ``--no-header`` there."""

from __future__ import annotations

import re

__all__ = ["in_flags", "parameter_name"]

_SWITCHES = {
    "header": ("--header", "--no-header"),
    "row_names": ("--row-names", "--no-row-names"),
    "allow_empty": ("--allow-empty", "--no-allow-empty"),
    "refit": ("--refit", "--no-refit"),
}
_OPTIONS = {
    "delimiter": "--delimiter",
    "encoding": "--encoding",
    "feature_graph": "--feature-graph",
    "format": "--format",
    "held_out": "--held-out",
    "inference": "--inference",
    "intercept": "--intercept",
    "key": "--key",
    "likelihood": "--likelihood",
    "long": "--long",
    "max_iter": "--max-iter",
    "missing": "--missing",
    "n_components": "--components",
    "n_splits": "--splits",
    "n_trials": "--trials",
    "n_workers": "--workers",
    "noise": "--noise",
    "random_state": "--seed",
    "sample_graph": "--sample-graph",
    "sheet": "--sheet",
    "timeout": "--timeout",
    "tol": "--tol",
}

# Options of the model that Python calls otherwise.
_OTHERWISE = {_OPTIONS[name].removeprefix("--"): name for name in ("n_components", "random_state")}

# What has no option of its own.
_SETTINGS = (
    "covariance",
    "feature_penalty",
    "graph_updates",
    "intercept_penalty",
    "n_neighbors",
    "prior",
    "sample_penalty",
    "update",
)

# Words in quotes, and parts of a path, are the user's own.
_QUOTED = r"(?<![\w=])(?:'[^'\n]*'|\"[^\"\n]*\")(?!\w)"
_OWN = r"(?<![\w/.'\"-])"
_ASSIGNED = re.compile(
    rf"{_QUOTED}|{_OWN}({'|'.join([*_SWITCHES, *_OPTIONS, *_SETTINGS])})=('[^']*'|\"[^\"]*\"|[^\s,;)]*)"
)
_BARE = re.compile(
    rf"{_QUOTED}|{_OWN}({'|'.join(name for name in {**_SWITCHES, **_OPTIONS} if '_' in name)})(?![\w/=-]|\.\w)",
)
# At the head of a sentence that says what an option must be, even words that mean other things are options.
_DEMANDED = re.compile(rf"^({'|'.join([*_SWITCHES, *_OPTIONS])})(?= must )")
_NEW_PLACE = "Choose another --output, or see whether the disk is full"
_PHRASES = (
    (re.compile(r"\(force=True, --force\)"), "(--force)"),
    (re.compile(r"\b([Ll]eave) (log1p|scale|long) out\b"), r"\1 --\2 out"),
    (re.compile(r"predict\(rows, columns\)"), "predict(rows, columns) in Python"),
    (re.compile(r"\banother estimator\b"), "another model"),
    (re.compile(r"\banother space\b"), "another --search"),
    (re.compile(r"\banother study_name or storage to start anew\b"), "--force without --resume to start anew"),
    (re.compile(r"\bPass another study_name or storage\b"), "Choose another --output"),
    (re.compile(r"\bPass the path of a file that an earlier search wrote, .* not exist yet\b"), _NEW_PLACE),
)


def parameter_name(text: str) -> str:
    """The name of a parameter in Python, however it is written: ``--components`` is ``n_components``."""
    name = text.strip().removeprefix("--")
    return _OTHERWISE.get(name, name.replace("-", "_"))


def in_flags(message: str) -> str:
    """A message with Python's parameters as the options that stand for them."""
    for pattern, words in _PHRASES:
        message = pattern.sub(words, message)
    return _BARE.sub(_bare, _ASSIGNED.sub(_assigned, _DEMANDED.sub(_bare, message)))


def _assigned(match: re.Match[str]) -> str:
    name, value = match.groups()
    if name is None:
        return match.group()
    kept = value.rstrip(".:")
    ending = value[len(kept) :]
    if name in _SWITCHES:
        yes, no = _SWITCHES[name]
        return {"True": yes, "False": no}.get(kept, yes) + ending
    plain = kept.strip("'\"")
    if name in _OPTIONS:
        return f"{_OPTIONS[name]} {plain}".rstrip() + ending
    return f"--set {name}={plain}" + ending


def _bare(match: re.Match[str]) -> str:
    name = match.group(1)
    if name is None:
        return match.group()
    return _SWITCHES[name][0] if name in _SWITCHES else _OPTIONS[name]
