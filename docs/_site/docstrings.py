"""Docstrings are reStructuredText, pages are Markdown: roles and formulas of the one in the words of the other."""

from __future__ import annotations

import re
from textwrap import dedent
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc):`([^`]+)`")
_INLINE = re.compile(r":math:`([^`]+)`")
_BLOCK = re.compile(r"^( *)\.\. math::[ ]?(.*)\n((?:(?:\1[ ]+\S.*)?\n)*(?:\1[ ]+\S.*)?)", re.MULTILINE)


class FromReStructuredText(griffe.Extension):
    """Rewrites every docstring as it is loaded."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for each module, class, function and attribute."""
        if isinstance(obj, griffe.Alias) or obj.docstring is None:
            return
        obj.docstring.value = as_markdown(obj.docstring.value, obj)


def as_markdown(text: str, obj: griffe.Object) -> str:
    """Formulas between dollar signs, and links to what the site has a place for."""
    text = _BLOCK.sub(_formula, text + "\n").rstrip("\n")
    text = _INLINE.sub(lambda found: f"${' '.join(found.group(1).split())}$", text)
    return _ROLE.sub(lambda found: _link(" ".join(found.group(1).split()), obj), text)


def _formula(found: re.Match[str]) -> str:
    indent, first, rest = found.groups()
    formula = "\n".join(line for line in (first.strip(), dedent(rest).strip()) if line)
    lines = "\n".join(indent + line.strip() for line in formula.splitlines())
    return f"\n{indent}$$\n{lines}\n{indent}$$\n\n"


def _link(target: str, obj: griffe.Object) -> str:
    short = target.startswith("~")
    name = target.lstrip("~")
    shown = name.rsplit(".", 1)[-1] if short else name
    try:
        path = name if name.startswith("lgmd") else obj.resolve(name)
    except griffe.NameResolutionError:
        # A method of the same class, perhaps inherited, which the scope does not know.
        path = f"{obj.path if obj.is_class else obj.parent.path if obj.parent else ''}.{name}"
    return f'<autoref optional identifier="{path}"><code>{shown}</code></autoref>'
