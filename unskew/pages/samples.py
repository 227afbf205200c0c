"""Pictures on a page with what is known of their rows: plain data that the macro `card` shows."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import torch

from unskew.data.dataset import DataSet
from unskew.data.pictures import thumbnails

SIDE = 224  # pixels of a picture on a page; data.size is no larger by default
BUDGET = 1_500_000  # bytes of all pictures of a page
LARGEST = 16_000  # bytes of one
SMALLEST = 1_500
Sample = dict[str, Any]


def sample(
    index: int,
    label: str,
    picture: str,
    *,
    path: str = "",
    said: str = "",
    score: float | None = None,
    scored: str = "score",
    kind: str = "",
    bias: str = "",
    facts: Iterable[tuple[str, str]] = (),
    map: str = "",
) -> Sample:
    """What the macro `card` shows of a row.

    `said` is the prediction, `kind` aligned or conflicting, `scored` says what the score is, and `map` is the picture with Grad-CAM.
    """
    name = PurePath(path).name if path else f"row {index}"
    known = score is not None and not math.isnan(score)
    result = "" if not said else "right" if said == label else "wrong"
    more = [(scored, f"{score:.2f}")] if known else []
    return {
        "index": index, "name": name, "path": path, "label": label, "said": said, "result": result, "kind": kind, "bias": bias,
        "score": score if known else None, "facts": [*more, *facts], "picture": picture, "map": map, "run": "",
        "alt": ", ".join([label, *([f"predicted {said}"] if said else []), *([kind] if kind else []), name]),
    }  # fmt: skip


def path_of(data: DataSet, index: int) -> str:
    return data.paths[index] if data.paths else ""


def allowance(pictures: int, budget: int = BUDGET) -> int:
    """Bytes that each of so many pictures may have.

    >>> allowance(10), allowance(300), allowance(100_000)
    (16000, 5000, 1500)
    """
    return min(LARGEST, max(SMALLEST, budget // max(pictures, 1)))


def enlarged(data: DataSet | None, rows: Sequence[int], budget: int = BUDGET) -> dict[int, str]:
    """Pictures of these rows for a page, larger than the thumbnails that records keep; nothing if rows are not pictures."""
    index = sorted(set(rows))
    if data is None or not index or len(data.shape) != 3:
        return {}
    most = allowance(len(index), budget)
    return dict(zip(index, thumbnails(data.inputs, torch.tensor(index), SIDE, most), strict=True))


def shown_rows(audit: Mapping[str, Any]) -> list[int]:
    """The rows that an audit, or the slices of an evaluation, shows."""
    galleries = audit.get("gallery", {}).get("classes", [])
    shown = [one["index"] for c in galleries for key in ("most_rows", "least_rows") for one in c[key]]
    found = audit.get("slices") or {"slices": [], "doubts": []}
    shown += [one["index"] for s in found["slices"] if s["kind"] == "conflicting" for one in s["rows"]]
    return shown + [d["index"] for d in found["doubts"]]


def gallery_samples(gallery: Mapping[str, Any], pictures: Mapping[int, str]) -> list[Sample]:
    """The rows of each class that a shortcut solves best (aligned), and those that it misleads most (conflicting)."""
    return [
        sample(one["index"], c["class"], pictures.get(one["index"], small), path=one["path"], score=one["score"], kind=kind)
        for c in gallery["classes"]
        for kind, key in (("aligned", "most"), ("conflicting", "least"))
        for one, small in zip(c[f"{key}_rows"], c[key], strict=False)  # audits up to 0.2 do not say which rows they are
    ]


def slice_samples(found: Mapping[str, Any] | None, pictures: Mapping[int, str]) -> dict[str, list[Sample]]:
    """Rows of conflicting slices, and rows whose label is in doubt, for the section on slices."""
    sliced = (found or {}).get("slices", [])
    against = [
        sample(
            one["index"], s["class"], pictures.get(one["index"], small), path=one["path"], score=one["score"],
            facts=[("seems", s["seems"]), ("slice", s["name"])],
        )
        for s in sliced if s["kind"] == "conflicting"
        for one, small in zip(s["rows"], s["pictures"], strict=False)
    ]  # fmt: skip
    doubts = [
        sample(
            d["index"], d["label"], pictures.get(d["index"], d["picture"]), path=d["path"], score=d["confidence"],
            scored="probability of its label", facts=[("seems", d["likely"])], kind="or lacks the shortcut" if d["conflicting"] else "",
        )
        for d in (found or {}).get("doubts", [])
    ]  # fmt: skip
    return {"slice_samples": against, "doubt_samples": doubts}
