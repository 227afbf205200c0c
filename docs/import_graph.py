"""The import graph of the package, read with `ast`: imports inside functions and under TYPE_CHECKING count like any other.

Used by the test that keeps imports going down, and by `make docs`, which draws it.
"""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent / "unskew"
# From the ground up. A package may import from the floors below it, and from itself.
FLOORS = (
    "core", "records", "stats", "losses", "nn", "data", "models", "representations", "features", "measure", "parts", "repairs",
    "methods", "training", "evaluation", "suites", "pages", "verbs", "explore", "cli", "unskew",
)  # fmt: skip


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = ("unskew", *path.relative_to(ROOT).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the package that a file imports, wherever in the file it does so."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "unskew"}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "unskew":
            assert node.level == 0, f"{path}: a relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in known else str(node.module))
    return found - {name}


def graph() -> dict[str, set[str]]:
    """Module to the modules that it imports."""
    known = modules()
    return {name: imports(name, path, known) for name, path in known.items()}


def package_of(module: str) -> str:
    """The floor that a module stands on; `unskew` itself and `unskew.__main__` are the top."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in FLOORS else "unskew"


def package_edges() -> dict[tuple[str, str], int]:
    """How many modules of one package import one of another."""
    counts: dict[tuple[str, str], int] = {}
    for module, targets in graph().items():
        for target in {package_of(t) for t in targets} - {package_of(module)}:
            counts[package_of(module), target] = counts.get((package_of(module), target), 0) + 1
    return counts


def picture() -> str:
    """An SVG: a line per floor, the highest first, and the floors that it stands on."""
    edges, height, left = package_edges(), 30, 190
    floors = list(reversed(FLOORS))
    place = {name: 34 + height * k for k, name in enumerate(floors)}
    column = {name: left + 34 * k for k, name in enumerate(floors)}
    width, tall = left + 34 * len(floors) + 20, 34 + height * len(floors) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {tall}" font-family="system-ui, sans-serif" font-size="13">',
        f'<rect width="{width}" height="{tall}" fill="#ffffff"/>',
        '<text x="10" y="18" fill="#52606d">a dot: this package imports the floor with a square in that column; number: modules</text>',
    ]
    for name in floors:
        y = place[name]
        shown = "unskew (public functions)" if name == "unskew" else name
        parts.append(f'<rect x="6" y="{y}" width="{left - 16}" height="{height - 6}" rx="4" fill="#e4efed"/>')
        parts.append(f'<text x="14" y="{y + 17}" fill="#1d2730">{shown}</text>')
        parts.append(f'<line x1="{left - 8}" x2="{column[name]}" y1="{y + 12}" y2="{y + 12}" stroke="#e4e7eb"/>')
        parts.append(f'<rect x="{column[name] - 8}" y="{y + 4}" width="16" height="16" rx="3" fill="#62b2a5"/>')
    for (source, target), count in sorted(edges.items()):
        x, y = column[target], place[source] + 12
        parts.append(f'<circle cx="{x}" cy="{y}" r="10" fill="#f6e2b7"/>')
        parts.append(f'<text x="{x}" y="{y + 4}" text-anchor="middle" font-size="10" fill="#1d2730">{count}</text>')
    return "\n".join([*parts, "</svg>", ""])
