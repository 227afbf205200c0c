"""The measured part of the page on choosing, by hand."""

from docs.choose import changes, table


def row(method, value, at="0.95", seed=0):
    figure = "class_balanced" if at == "0.5" else "worst_group"
    return {
        "data": "places",
        "at": at,
        "method": method,
        "seed": str(seed),
        "worst_group": "",
        "class_balanced": "",
        figure: str(value),
    }


def test_a_change_is_measured_against_the_better_plain_training():
    rows = [row("erm", 40), row("erm", 50, seed=1), row("plain", 44), row("last_layer", 70), row("last_layer", 80, seed=1)]
    assert changes(rows, "last_layer", unbiased=False) == {"places 95 %": 75 - 45}
    assert changes(rows, "last_layer", unbiased=True) == {}
    assert changes([row("last_layer", 70)], "last_layer", unbiased=False) == {}  # nothing to compare it with


def test_what_harms_stands_beside_what_gains():
    rows = [row("erm", 40), row("erm", 80, at="0.5"), row("pgd", 20), row("pgd", 80.5, at="0.5"), row("jtt", 40.9)]
    lines = table(rows).splitlines()
    assert lines[2:] == ["| `pgd` | 0 of 1 | places 95 % -20.0 | places +0.5 |", "| `jtt` | 0 of 1 | none | – |"]


def test_many_places_are_a_range():
    rows = [{**row(m, v), "data": f"d{k}", "conflicting": str(v)} for k in range(3) for m, v in (("erm", 10), ("lff", 20 + k))]
    assert table(rows).splitlines()[2] == "| `lff` | 3 of 3: +10.0 (d0 95 %) to +12.0 (d2 95 %) | none | – |"
