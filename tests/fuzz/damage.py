"""Ways to damage bytes and JSON, drawn by hypothesis and applied in the child process."""

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

HOSTILE_TEXT = (
    "", " ", "=1+1", "../../esc", "/etc/passwd", "a" * 300, "\u202ex", "helper.mine", "helper_pkg.mine", "nan", "inf", "1e308", "-1",
    "None", "{shared.x}", "{0.__class__}", "<script>alert(1)</script>", "${HOME}", "test/../../esc", "erm", "toy", "😀", "a\nb", "'", "\t",
)  # fmt: skip
hostile_values = st.one_of(
    st.sampled_from(HOSTILE_TEXT), st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.sampled_from([0, 1, -1, 10**9, 6]),
    st.floats(allow_nan=False, allow_infinity=False), st.just([]), st.just({}), st.lists(st.integers(-3, 3), max_size=3),
)  # fmt: skip
byte_damage = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["flip", "cut", "zero", "insert", "repeat"]), "at": st.floats(0, 1), "value": st.integers(0, 255)}
    ),
    min_size=1,
    max_size=4,
)
json_damage = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["replace", "delete", "replace", "rename"]), "at": st.floats(0, 1), "value": hostile_values}
    ),
    min_size=1,
    max_size=3,
)


def hurt_bytes(path: Path, damage: list[dict[str, Any]]) -> None:
    raw = bytearray(path.read_bytes())
    for one in damage:
        place = min(int(one["at"] * len(raw)), max(len(raw) - 1, 0))
        if one["op"] == "cut":
            del raw[place:]
        elif not raw:
            continue
        elif one["op"] == "flip":
            raw[place] ^= one["value"] or 1
        elif one["op"] == "zero":
            raw[place : place + 16] = bytes(len(raw[place : place + 16]))
        elif one["op"] == "insert":
            raw[place:place] = bytes([one["value"]]) * 7
        else:
            raw[place:place] = raw[place : place + 64]
    path.write_bytes(bytes(raw))


def hurt_json(path: Path, damage: list[dict[str, Any]]) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(hurt_value(content, damage)), encoding="utf-8")


def hurt_value(content: Any, damage: list[dict[str, Any]]) -> Any:
    """A nested value with some of its entries replaced, removed or renamed."""
    holder = {"": content}
    for one in damage:
        places = list(_places(holder))
        inside, key = places[min(int(one["at"] * len(places)), len(places) - 1)]
        if one["op"] == "replace" or isinstance(inside, list) or inside is holder:
            inside[key] = one["value"]
        elif one["op"] == "delete":
            del inside[key]
        else:
            inside[f"{key}x"] = inside.pop(key)
    return holder[""]


def _places(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from _places(inner)
