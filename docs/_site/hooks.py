"""What the site does beyond Markdown: formulas as MathML, and the examples as files of the site."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

_EXAMPLES = ("examples/*.py", "examples/pictures/*.png")

# What the Markdown extension arithmatex leaves of a formula.
_FORMULA = re.compile(r'<(div|span) class="arithmatex">(?:\\\(|\\\[)(.*?)(?:\\\)|\\\])</\1>', re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the scripts and pictures of ``examples``, which stand beside the pages and not among them."""
    root = Path(config.config_file_path).parent
    for pattern in _EXAMPLES:
        for path in sorted(root.glob(pattern)):
            files.append(File.generated(config, path.relative_to(root).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links out of the folder of pages to the examples lead to their place in the site."""
    ups = "../" * (page.file.src_uri.count("/") + 1)
    return markdown.replace(f"]({ups}examples/", f"]({ups[3:]}examples/")


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Write formulas as MathML, which browsers draw themselves: nothing has to be loaded to read them."""
    return _FORMULA.sub(_as_mathml, html)


def _as_mathml(found: re.Match[str]) -> str:
    tag, source = found.groups()
    display = "block" if tag == "div" else "inline"
    formula = convert(unescape(source).strip(), display=display)
    # "Distributed as" is a relation, with space around it, and no letter.
    formula = formula.replace("<mi>&#x0007E;</mi>", "<mo>&#x0223C;</mo>")
    # A bar is a fence here: determinants, norms and sizes, without space around it.
    formula = re.sub(
        r"<mo[^>]*>(&#x0007C;|\||&#x02016;)</mo>", r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', formula
    )
    # Each letter of an upright word would stand on its own.
    return re.sub(
        r'<mrow>((?:<mi mathvariant="normal">\w</mi>){2,})</mrow>',
        lambda word: f"<mi>{re.sub('<[^>]+>', '', word.group(1))}</mi>",
        formula,
    )
