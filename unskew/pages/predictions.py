"""The page of a model that was trained elsewhere, from its predictions."""

import math

from unskew.core.version import VERSION
from unskew.pages.collect import OF_SETS, gallery, group_rows, heat_map, leakage_verdict
from unskew.pages.html import MEANING, environment, style
from unskew.records import AVERAGES, Evaluation


def render_predictions(found: Evaluation) -> str:
    """The page of an evaluation of predictions."""
    metrics = found.json()
    maps = [] if found.multi_label else [m for m in map(heat_map, found.by_bias.values() or [found.groups]) if m]
    return environment().get_template("predictions.html").render(
        verdict=found.verdict.sentence + leakage_verdict(metrics.get("leakage")),
        metrics=metrics,
        audit=metrics,  # the section on slices is the audit's
        name=found.run,
        data=found.on,
        rows=len(found.rows),
        averages=OF_SETS if found.multi_label else AVERAGES,
        meaning=MEANING,
        heat_maps=maps,
        group_rows=group_rows(found),
        gallery=gallery(found),
        style=style(),
        version=VERSION,
        isnan=lambda v: v is None or math.isnan(v),
    )  # fmt: skip
