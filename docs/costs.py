"""The measured part of docs/cluster.md, from scale.jsonl and speed.jsonl: `make docs` writes it between the page's two marks."""

from pathlib import Path

from docs import scale, speed
from docs.choose import filled

PAGE = Path(__file__).parent / "cluster.md"
CALLED = {
    "audit": "vectors of 64 numbers, whole audit",
    "repair": "the same, REPAIR",
    "gradients": "the same, gradients of a small network",
}


def page() -> str:
    return filled(PAGE, measured())


def measured() -> str:
    known = {(line["what"], line["rows"]): line for line in scale.lines()}
    lines = ["| a million | processor time | memory beyond the first million |", "|---|---:|---:|"]
    photos = scale.slope(known, scale.PHOTOS, "processor")
    if photos is not None:
        cost = f"{photos / 3600:.1f} core hours ({photos / 1e3:.0f} ms each)"
        lines.append(f"| photographs of 224 pixels, probes of an audit | {cost} | labels, paths and scores: see below |")
    for what, name in CALLED.items():
        seconds, memory = (scale.slope(known, what, key) for key in ("processor", "gigabytes"))
        if seconds is not None and memory is not None:
            lines.append(f"| {name} | {seconds:.0f} s | {memory:.2f} GB |")
    return "\n".join([*lines, "", *_files(), *_nodes()])


def _files() -> list[str]:
    found = {line["name"]: line for line in speed.lines() if line["bench"] == "manifest"}
    listed, audited = found.get("manifest, 200,000 files"), found.get("manifest, memory of an audit")
    if listed is None or audited is None:
        return []
    few, many = (audited["more"][f"{n:,} files"]["GB"] for n in (20_000, 200_000))
    first, side = listed["more"]["first reading (s)"], audited["more"]["pixels of a side"]
    return [
        f"- A folder of 200,000 JPEGs of {side} pixels is listed in {first:.0f} s the first time and in {listed['value']:.1f} s from its "
        "manifest.",
        f"  The probes of its audit took {many:.2f} GB with their workers, those of 20,000 such files {few:.2f} GB "
        "(`make bench NAME=manifest`).",
    ]


def _nodes() -> list[str]:
    found = next((line for line in speed.lines() if "rows a second" in line["more"]), None)
    if found is None:
        return []
    rates = found["more"]["rows a second"]
    return [
        f"- Two Ray nodes of one core audited {rates['ray']:.0f} photographs a second, two local worker processes {rates['local']:.0f} "
        "(`make bench NAME=cluster_speed`)."
    ]
