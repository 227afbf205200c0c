"""Charts are drawn where there is something to draw."""

from unskew.pages import charts


def test_without_groups_there_is_no_chart_of_the_gain():
    def run(aligned):
        shares = {"aligned": aligned, "conflicting": 0.5}
        return {"name": str(aligned), "metrics": {**shares, "intervals": {name: [0.4, 0.6] for name in shares}}}

    assert "<svg" in charts.gain([run(0.9), run(0.8)])
    assert charts.gain([run(0.9), run(float("nan"))]) == ""
    assert charts.gain([run(0.9)]) == ""
