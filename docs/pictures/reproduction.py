"""Put the tables and pictures of ``lgmd reproduce all --output FOLDER`` into docs/reproduction.md: pass the folder."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from PIL import Image

from lgmd.experiments import EXPERIMENTS

DOCS = Path(__file__).parent.parent
PAGE = DOCS / "reproduction.md"
IMAGES = DOCS / "images" / "reproduction"


def with_pictures(text: str, folder: Path, name: str) -> str:
    """The page of an experiment with its pictures copied beside the documentation."""

    def copied(found: re.Match[str]) -> str:
        IMAGES.mkdir(parents=True, exist_ok=True)
        with Image.open(folder / found[2]) as picture:  # few colours make small files
            picture.convert("RGB").quantize(64).save(IMAGES / f"{name}_{found[2]}", optimize=True)
        return f"![{found[1]}](images/reproduction/{name}_{found[2]})"

    return re.sub(r"!\[([^\]]*)\]\(([^)]+\.png)\)", copied, text)


def main(results: Path) -> None:
    """Replace what stands between the marks of each experiment that has been run."""
    page = PAGE.read_text()
    for name in EXPERIMENTS:
        source = results / name / "page.md"
        if not source.exists():
            print(f"{name}: not there")
            continue
        text = with_pictures(source.read_text().strip(), source.parent, name)
        first, last = f"<!-- {name} -->", f"<!-- end {name} -->"
        page = re.sub(f"(?s){first}.*?{last}", lambda _, t=text, f=first, e=last: f"{f}\n\n{t}\n\n{e}", page)
        print(f"{name}: {len(text.splitlines())} lines")
    PAGE.write_text(page)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
