"""What to fit: the options of the model, and settings files."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lgmd.cli._choices import InferenceKind, InterceptKind, LikelihoodKind, ModelKind, NoiseKind
from lgmd.cli._flags import parameter_name

if TYPE_CHECKING:
    from lgmd.estimators.factorization import Factorization
    from lgmd.tables import Table

__all__ = ["ModelOptions", "ModelSettings", "read_settings"]

_PANEL = "The model"
_CLASSES = {"lgmd": "LGMD", "lgmd+": "LGMDPlus", "pmf": "PMF", "dgrmd": "DGRMD"}
_GRAPHS = ("sample_graph", "feature_graph")
_MOST_COMPONENTS = 20


def _option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_PANEL, show_default=False, **more)


@dataclass(frozen=True)
class ModelSettings:
    """
    A model in plain values, as settings files hold it.

    Attributes
    ----------
    model : str
        "lgmd", "lgmd+", "pmf" or "dgrmd".
    parameters : dict of str to value
        Of the model, by their names in Python; a graph is a name or the path of a file.
    """

    model: str
    parameters: dict[str, Any]

    def build(self, table: Table, note: Callable[[str], None] = lambda _: None) -> Factorization:
        """The model, not fitted yet, for a table of this size with these names."""
        from lgmd import estimators
        from lgmd.cli._graph_files import graph_for
        from lgmd.exceptions import InvalidParameterError

        kind = getattr(estimators, _CLASSES[self.model])
        known = list(inspect.signature(kind).parameters)
        values: dict[str, Any] = {"n_components": min(_MOST_COMPONENTS, *table.shape), "random_state": 0}
        values |= self.parameters
        for side in _GRAPHS:
            if side not in values:
                continue
            if side not in known:
                raise InvalidParameterError(
                    f"The model {self.model} makes its own graphs or has none, so {side} cannot be set. Leave it out, "
                    "or choose --model lgmd."
                )
            values[side] = graph_for(values[side], table, side, note)
        model = kind(**{name: value for name, value in values.items() if name in known})
        inner = {name: value for name, value in values.items() if name not in known}
        if not inner:
            return model  # type: ignore[no-any-return]
        from lgmd.tuning import with_parameters

        return with_parameters(model, inner)  # type: ignore[no-any-return]

    def complete(self, model: Factorization) -> dict[str, Any]:
        """Every parameter of the model that was built, in plain values that mean the same in any folder."""
        from lgmd.cli._graph_files import portable

        plain = {
            name: value
            for name, value in model.get_params(deep=False).items()
            if value is None or isinstance(value, bool | int | float | str)
        }
        return portable({**plain, **self.parameters})


@dataclass(frozen=True)
class ModelOptions:
    """Which model. What is None was not said."""

    model: Annotated[
        ModelKind | None, _option("--model", help="Which model (default: lgmd).", case_sensitive=False)
    ] = None
    components: Annotated[
        int | None,
        _option("--components", "-k", min=1, help="Most factors (default: 20, or fewer if the table is smaller)."),
    ] = None
    inference: Annotated[
        InferenceKind | None,
        _option("--inference", help="Only variational gives error bars (default: variational; pmf, dgrmd: map)."),
    ] = None
    sample_graph: Annotated[
        str | None,
        _option(
            "--sample-graph",
            help="Graph over rows: evidence, laplacian, glasso, threshold, knn, none, or a file with edges or an "
            "adjacency, which is trusted as far as the data does (default: evidence).",
            metavar="NAME|FILE",
        ),
    ] = None
    feature_graph: Annotated[
        str | None, _option("--feature-graph", help="The same over columns.", metavar="NAME|FILE")
    ] = None
    noise: Annotated[
        NoiseKind | None, _option("--noise", help="Whether rows or columns differ in noise (default: homoscedastic).")
    ] = None
    likelihood: Annotated[
        LikelihoodKind | None, _option("--likelihood", help="student if there are outliers (default: gaussian).")
    ] = None
    intercept: Annotated[InterceptKind | None, _option("--intercept", help="Which means (default: both).")] = None
    max_iter: Annotated[int | None, _option("--max-iter", min=1, help="Most iterations (default: 200).")] = None
    tol: Annotated[float | None, _option("--tol", min=0.0, help="Change at which to stop (default: 1e-5).")] = None
    seed: Annotated[int | None, _option("--seed", min=0, help="Of the random start (default: 0).")] = None
    allow_empty: Annotated[
        bool | None, _option("--allow-empty/--no-allow-empty", help="Accept rows and columns without any entry.")
    ] = None
    set: Annotated[
        list[str] | None,
        _option(
            "--set",
            help="Any other parameter, such as prior=shared or sample_graph__fdr=0.05. Repeat.",
            metavar="NAME=VALUE",
        ),
    ] = None
    settings: Annotated[
        Path | None,
        _option(
            "--settings", readable=False, help="Settings that lgmd tune or lgmd fit wrote; options given beside it win."
        ),
    ] = None

    def resolve(self) -> tuple[ModelSettings, dict[str, Any]]:
        """The model's settings, and the reading options of the settings file."""
        stored = {} if self.settings is None else read_settings(self.settings)
        said = {
            "n_components": self.components,
            "inference": self.inference and self.inference.value,
            "sample_graph": self.sample_graph,
            "feature_graph": self.feature_graph,
            "noise": self.noise and self.noise.value,
            "likelihood": self.likelihood and self.likelihood.value,
            "intercept": self.intercept and self.intercept.value,
            "max_iter": self.max_iter,
            "tol": self.tol,
            "random_state": self.seed,
            "allow_empty": self.allow_empty,
        }
        parameters = dict(stored.get("parameters", {}))
        parameters |= {name: value for name, value in said.items() if value is not None}
        parameters |= dict(_assignment(text) for text in self.set or ())
        model = self.model.value if self.model is not None else stored.get("model", "lgmd")
        return ModelSettings(model, parameters), dict(stored.get("reading", {}))


def read_settings(path: Path) -> dict[str, Any]:
    """
    A settings file, checked.

    Raises
    ------
    InvalidParameterError
        If it is none.
    """
    from lgmd.exceptions import InvalidParameterError

    hint = "Pass best.json of lgmd tune, or settings.json of lgmd fit."
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidParameterError(f"There is no settings file {path}. {hint}") from None
    except OSError as error:
        raise InvalidParameterError(f"The settings file {path} cannot be read: {error.strerror}. {hint}") from error
    except ValueError as error:
        raise InvalidParameterError(f"{path} is no settings file: it is not JSON ({error}). {hint}") from error
    if not isinstance(found, Mapping) or not isinstance(found.get("parameters"), Mapping):
        raise InvalidParameterError(f"{path} is no settings file: it has no 'parameters'. {hint}")
    if found.get("model", "lgmd") not in _CLASSES:
        raise InvalidParameterError(
            f"{path} asks for the model {found['model']!r}, which there is not. Known are {', '.join(_CLASSES)}."
        )
    if not isinstance(found.get("reading", {}), Mapping):
        raise InvalidParameterError(f"{path} is no settings file: its 'reading' is no table. {hint}")
    return dict(found)


def _assignment(text: str) -> tuple[str, Any]:
    from lgmd.exceptions import InvalidParameterError

    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidParameterError(f"--set takes NAME=VALUE, but is {text!r}. For example: --set prior=shared")
    try:
        return parameter_name(name), json.loads(value)
    except ValueError:
        return parameter_name(name), value
