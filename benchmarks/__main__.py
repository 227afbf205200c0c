"""`python -m benchmarks [NAME] [--record] [words of the benchmark]`."""

import json
import sys
from importlib import import_module
from pathlib import Path

from benchmarks import _registry

HERE = Path(__file__).parent


def names() -> list[str]:
    return sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))


def main() -> None:
    words = sys.argv[1:]
    if not words:
        for name in names():
            first = (HERE / f"{name}.py").read_text(encoding="utf-8").partition("\n")[0]
            print(f"{name:20} {first.strip(chr(34))}")
        return
    name, *rest = words
    if name not in names():
        raise SystemExit(f"no benchmark {name!r}; available: {', '.join(names())}")
    module = import_module(f"benchmarks.{name}")
    keep = "--record" in rest
    sys.argv = [name, *(word for word in rest if word != "--record")]
    if not hasattr(module, "figures"):
        sys.argv = [name, *rest]  # what it keeps, and where, is its own affair
        module.main()
        return
    lines = []
    for figure in module.figures(sys.argv[1:]):
        lines.append({"bench": name, **figure.json(), **_registry.about()})
        print(json.dumps(lines[-1]), flush=True)
    if keep:
        _registry.record(lines)


if __name__ == "__main__":
    main()
