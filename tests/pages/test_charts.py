"""Charts are drawn where there is something to draw."""

import base64
import csv
import io

from unskew.pages import charts


def test_without_groups_there_is_no_chart_of_the_gain():
    def run(aligned):
        shares = {"aligned": aligned, "conflicting": 0.5}
        return {"name": str(aligned), "metrics": {**shares, "intervals": {name: [0.4, 0.6] for name in shares}}}

    assert "<svg" in charts.gain([run(0.9), run(0.8)]).svg
    assert not charts.gain([run(0.9), run(float("nan"))])
    assert not charts.gain([run(0.9)])
    assert charts.gain([run(0.9)], least=1)


def test_the_data_of_a_chart_are_a_csv_that_no_spreadsheet_runs():
    found = [{"name": n, "bias": 0.5, "low": 0.4, "high": None, "verdict": "question"} for n in ("=1+1", 'a "b", c')]
    drawn = charts.ranking(found)
    kind, _, body = drawn.csv.partition(",")
    assert kind == "data:text/csv;charset=utf-8;base64"
    rows = list(csv.DictReader(io.StringIO(base64.b64decode(body).decode())))
    assert [row["name"] for row in rows] == ["'=1+1", 'a "b", c']
    assert [float(row["low"]) for row in rows] == [0.4, 0.4]


def test_charts_follow_the_colours_of_the_page():
    drawn = charts.ranking([{"name": "a", "bias": 0.5, "low": 0.4, "high": 0.6, "verdict": "question"}])
    assert 'fill="currentColor"' in drawn.svg
    assert 'fill="white"' not in drawn.svg
