"""Slices, what to collect and probable label errors as text for a terminal."""

from unskew.pages.verdict import percent
from unskew.records import Slices

MOST_LINES = 12  # conflicting slices with a line each


def slices_lines(found: Slices | None) -> list[str]:
    """The largest conflicting slices, what to collect, and how many labels are in doubt; nothing if they were not looked for."""
    if found is None:
        return []
    lines = ["", f"slices: {found.sentence}"]
    if found.reason:
        return lines
    ranked = sorted(found.conflicting, key=lambda s: -s.n)
    for s in ranked[:MOST_LINES]:
        gain = s.collect
        more = "" if gain is None else f"; {gain.rows} more: {percent(gain.before, 0)} to about {percent(gain.after, 0)} right"
        lines.append(f"  {s.sentence}; held-out error {percent(s.error, 0)}{more}")
    lines += [f"  … and {len(ranked) - MOST_LINES} more on the page"] if len(ranked) > MOST_LINES else []
    if found.doubtful:
        lacking = sum(d.conflicting for d in found.doubts)
        also = f" ({lacking} of the first {len(found.doubts)} may lack the shortcut instead)" if lacking else ""
        lines.append(f"probable label errors: {found.doubtful} of {found.rows} rows{also}; see likely_label in scores.parquet")
    return lines
