"""What cleanlab's Datalab says of the planted photographs: its scan for correlations between image properties and labels.

    pip install "cleanlab[image]==2.9.0"
    python -m benchmarks planted_cleanlab [--only TEXT] [--out docs/results/planted-cleanlab.csv]

The same folders as of planted_photos, from the same seeds. A property counts as raised where its score is below Datalab's own default
threshold. Adds a row to the CSV for each folder, from which an interrupted run resumes; then makes the page of planted_photos again.
"""

import contextlib
import importlib.metadata
import io
import time
from pathlib import Path
from typing import Any

from benchmarks.planted.campaign import fill, words
from benchmarks.planted.folders import Folder
from benchmarks.planted_photos import page

COLUMNS = (
    "name", "group", "kind", "base", "rows", "alignment", "share", "raised", "properties", "lowest", "false", "version", "seconds",
)  # fmt: skip
INSTALL = 'planted_cleanlab needs cleanlab with its image checks: pip install "cleanlab[image]==2.9.0"'


def main() -> None:
    given = words(__doc__, "docs/results/planted-cleanlab.csv").parse_args()
    try:
        import cleanlab  # type: ignore[import-not-found]  # noqa: F401
        import cleanvision  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        raise SystemExit(INSTALL) from None
    fill(given, COLUMNS, row)
    photos = given.out.with_name("planted-photos.csv")
    if photos.exists():
        photos.with_suffix(".md").write_text(page(photos), encoding="utf-8")


def row(folder: Folder, place: Path) -> dict[str, Any]:
    started = time.process_time()
    scores, threshold = correlations(place)
    raised = sorted((name for name, score in scores.items() if score < threshold), key=lambda name: scores[name])
    result = {
        "name": folder.name, "group": folder.group, "kind": "" if folder.kind is None else folder.kind.name, "base": folder.base,
        "rows": folder.rows, "alignment": folder.alignment, "share": folder.share, "raised": int(bool(raised)),
        "properties": " ".join(f"{name}={scores[name]:.3f}" for name in raised), "lowest": f"{min(scores.values()):.3f}",
        "false": "" if folder.group == "planted" else int(bool(raised)),
        "version": importlib.metadata.version("cleanlab"), "seconds": f"{time.process_time() - started:.1f}",
    }  # fmt: skip
    print(result, flush=True)
    return result


def correlations(place: Path) -> tuple[dict[str, float], float]:
    """({property: score}, threshold) of the default scan of a folder of class folders; a lower score is a closer correlation."""
    from cleanlab import Datalab  # type: ignore[import-not-found]
    from datasets import Dataset, Image  # type: ignore[import-not-found]

    files = sorted(path for path in place.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
    labels = [path.relative_to(place).parts[0] for path in files]
    data = Dataset.from_dict({"image": [str(path) for path in files], "label": labels}).cast_column("image", Image())
    with contextlib.redirect_stdout(io.StringIO()):  # it reports as it goes
        lab = Datalab(data=data, label_name="label", image_key="image", verbosity=0)
        lab.find_issues()
    found = lab.get_info("spurious_correlations")
    table = found["correlations_df"]
    names = (name.removesuffix("_score") for name in table["property"])
    return dict(zip(names, map(float, table["score"]), strict=True)), float(found["threshold"])


if __name__ == "__main__":
    main()
