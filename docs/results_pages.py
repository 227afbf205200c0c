"""Write docs/results again from the committed data: a page for every results file of a suite, and what reproduces.

make results
"""

from pathlib import Path

from docs import claims
from unskew.pages.results import is_results, text

HERE = Path(__file__).parent / "results"


def files() -> list[Path]:
    """The results files of suites."""
    return [path for path in sorted(HERE.glob("*.csv")) if is_results(path)]


def pages() -> dict[str, str]:
    """Every page below docs/ that comes from results, with its content."""
    found = {f"results/{path.with_suffix('.md').name}": text(path) for path in files()}
    return found | {"results/reproduces.md": claims.page(files())}


def main() -> None:
    for name, content in pages().items():
        (HERE.parent / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
