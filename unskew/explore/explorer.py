"""One exploration: rows, tags, features and pictures, and the answer to everything the page asks."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from unskew.core.errors import UserError
from unskew.data.sources import as_words
from unskew.data.tags import tags_path
from unskew.explore.looks import Looks
from unskew.explore.measures import Measures
from unskew.explore.opened import Opened
from unskew.explore.pictures import Pictures
from unskew.explore.rows import MAP, Rows
from unskew.explore.tags import HAND, SURE, Tags
from unskew.parts.tagging import ask, spread

MOST_ROWS = 500  # that one request may ask for
FIRST = 120  # rows that come with a view; the page fetches as many at once
POINTS = 20_000  # of the map that are drawn
QUESTIONS = 5


@dataclass
class Explorer:
    """Everything behind the page. Methods take and give JSON types; what is wrong with a request is a UserError."""

    opened: Opened
    tags: Tags
    looks: Looks
    rows: Rows
    pictures: Pictures
    measures: Measures
    _shown: tuple[str, ...] = ()
    _stamp: Any = ()
    _mapped: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _last: dict[str, torch.Tensor] = field(default_factory=dict)  # probabilities of the last spread, by tag

    @classmethod
    def of(cls, opened: Opened, *, write: bool = False, most: int = 20_000, table: Path | None = None) -> "Explorer":
        data = opened.data
        path = table or tags_path(data.source)
        if path is None:
            raise UserError(f"{data.name} has no place on disk for its tags; name a table with --tags")
        tags, looks = Tags(path, data, write), Looks(data, most)
        rows = Rows.of(opened.columns, len(data))
        return cls(opened, tags, looks, rows, Pictures(data), Measures(opened, tags, looks))

    def refresh(self) -> None:
        """Take up what other processes wrote into the table of tags, and a map that has become ready."""
        with self._lock:
            stamp = self.tags.stamp
            if stamp != self._stamp:
                shown = self.tags.series()
                names = tuple(s.name for s in shown)
                self.rows.put(shown, "tag", [n for n in self._shown if n not in names])
                self._stamp, self._shown = stamp, names
            if self.looks.version != self._mapped and self.looks.seen is not None:
                self._mapped, seen = self.looks.version, self.looks.seen
                places = np.full((len(self.opened.data), 2), np.nan, dtype=np.float32)
                places[seen.index.numpy()] = seen.points.numpy()
                self.rows.put([pl.Series(name, places[:, k]).fill_nan(None) for k, name in enumerate(MAP)], "map")

    def about(self) -> dict[str, Any]:
        """What the page needs once: columns, classes, what may be done."""
        self.refresh()
        data = self.opened.data
        return {
            "title": self.opened.title, "source": data.source, "rows": len(data), "classes": list(data.classes),
            "multi_label": data.multi_label, "pictures": data.has_inputs, "side": max(data.shape[-2:]) if len(data.shape) > 1 else 0,
            "results": list(self.opened.results), "write": self.tags.write, "table": str(self.tags.path), "words": as_words(data),
            "columns": self._columns(),
            "tags": self._tags(), "map": self._state(),
        }  # fmt: skip

    def _columns(self) -> list[dict[str, Any]]:
        return [one.json() for one in self.rows.columns.values() if one.name not in MAP]

    def _state(self) -> dict[str, Any]:
        seen = self.looks.seen
        return {"version": self._mapped, "working": self.looks.working, "note": self.looks.note, "how": seen.how if seen else ""}

    def _tags(self) -> list[dict[str, Any]]:
        frame, found = self.tags.frame(), []
        for name in self.tags.names():
            hand = frame[f"{name} {HAND}"]
            yes, marked = int(hand.sum() or 0), len(hand) - hand.null_count()
            said = frame[name]
            found.append(
                {
                    "name": name, "yes": yes, "no": marked - yes, "spread": len(said) - said.null_count() > marked,
                    "says_yes": int((said == "yes").sum()), "rows": len(said) - said.null_count(),
                }
            )  # fmt: skip
        return found

    def view(self, where: Mapping[str, Any], sort: str, descending: bool) -> dict[str, Any]:
        """Which rows pass, how many of each value do, and which points of the map."""
        self.refresh()
        if not isinstance(where, dict) or not isinstance(sort, str):
            raise UserError("a view is asked for with conditions by column, and the name of a column to sort by")
        view = self.rows.view(where, sort, bool(descending))
        frame = self.tags.frame()
        marks = {"drop": int((frame["weight"] <= 0).sum()), "relabel": len(frame) - frame["relabel"].null_count()}
        return {
            "view": view.key, "rows": len(view.ids), "first": self.cards(view.ids[:FIRST].tolist()), "counts": self.rows.counts(view),
            "bits": self.rows.bits(view, self._points()), "columns": self._columns(), "tags": self._tags(), "marks": marks,
            "map": self._state(),
        }  # fmt: skip

    def _points(self) -> np.ndarray:
        """The sample ids of the points that are drawn."""
        seen = self.looks.seen
        if seen is None or not self._mapped:
            return np.zeros(0, dtype=np.int64)
        index = seen.index.numpy()
        return index[np.linspace(0, len(index) - 1, min(len(index), POINTS)).astype(np.int64)]

    def points(self) -> bytes:
        """The map: sample ids (uint32), then x and y of each (float32)."""
        self.refresh()
        ids = self._points()
        if not len(ids):
            return b""
        x, y = (self.rows.named(name).series.gather(ids).to_numpy() for name in MAP)
        return ids.astype("<u4").tobytes() + np.stack([x, y], 1).astype("<f4").tobytes()

    def colours(self, name: str) -> bytes:
        """The code of a column's value (uint8) at every point of the map; of numbers, the bin."""
        self.refresh()
        code = self.rows.named(name).code
        if code is None:
            raise UserError(f"{name} holds text; a map cannot be coloured by it")
        return code.gather(self._points()).clip(0, 255).cast(pl.UInt8).to_numpy().tobytes()

    def window(self, key: str, start: int, count: int) -> dict[str, Any]:
        """Some rows of a view, as the grid shows them."""
        ids = self.rows.recall(key)[max(0, start) : max(0, start) + min(count, MOST_ROWS)]
        return {"from": start, "rows": self.cards(ids.tolist())}

    def cards(self, ids: Sequence[int]) -> list[dict[str, Any]]:
        """What stands below the picture of each of these rows."""
        index = np.asarray(ids, dtype=np.int64)
        columns, frame = self.rows.columns, self.tags.frame()

        def of(name: str) -> list[Any]:
            return columns[name].series.gather(index).to_list() if name in columns else [None] * len(index)

        wrong = [name for name in columns if name == "correct" or name.endswith(" correct")]
        hand = {name: frame[f"{name} {HAND}"].gather(index).to_list() for name in self.tags.names()}
        said = {name: frame[name].gather(index).to_list() for name in hand}
        drop = (frame["weight"].gather(index) <= 0).to_list()
        labels, paths, new = of("label"), of("path"), frame["relabel"].gather(index).to_list()
        missed = [of(name) for name in wrong]
        return [
            {
                "id": int(i), "label": labels[k], "path": paths[k], "drop": drop[k], "relabel": new[k],
                "wrong": any(one[k] == "no" for one in missed),
                "tags": {name: {"says": said[name][k], "hand": hand[name][k]} for name in hand if said[name][k] is not None},
            }
            for k, i in enumerate(index.tolist())
        ]  # fmt: skip

    def row(self, row: int) -> dict[str, Any]:
        """Everything that is known of one row."""
        self.check(row)
        self.refresh()
        fields = {name: one.series[row] for name, one in self.rows.columns.items() if name not in MAP}
        return {**self.cards([row])[0], "fields": {name: value for name, value in fields.items() if value is not None}}

    def check(self, row: int) -> None:
        if not 0 <= row < len(self.opened.data):
            raise UserError(f"no row {row}; there are rows 0 to {len(self.opened.data) - 1}")

    def ids(self, asked: Mapping[str, Any]) -> list[int]:
        """The rows of a request: listed, or all of a view."""
        if isinstance(asked.get("view"), str):
            return [int(i) for i in self.rows.recall(asked["view"]).tolist()]
        listed = asked.get("rows")
        if not isinstance(listed, list) or not all(type(i) is int for i in listed):
            raise UserError("rows must be a list of sample ids")
        return listed

    def mark(self, tag: str, rows: Sequence[int], value: bool | None) -> dict[str, Any]:
        marked = self.tags.mark(tag, rows, value)
        self.refresh()
        return {"tag": tag, "marked": marked, "tags": self._tags()}

    def spread(self, tag: str) -> dict[str, Any]:
        """Read the tag from the features, write what is read, and say which rows to ask about next."""
        hand, seen = torch.from_numpy(self.tags.hand(tag)), self.looks.wait(0.0)
        data = self.opened.data
        mark = hand[seen.index]
        found = spread(seen.blocks, mark, None if data.multi_label else data.y[seen.index])
        self.tags.spread(tag, seen.index.numpy(), found.p.numpy())
        self._last[tag] = found.p
        self.refresh()
        best = sorted(found.weight.items(), key=lambda item: -item[1])[:3]
        return {
            "tag": tag, "rows": len(seen.index), "yes": int((found.p >= 0.5).sum()), "agreement": found.agreement,
            "marked": int((hand >= 0).sum()), "read_from": [{"what": seen.phrases.get(n, n), "weight": w} for n, w in best if w > 0.05],
            "ask": self.ask(tag), "tags": self._tags(), "note": self.looks.note,
        }  # fmt: skip

    def ask(self, tag: str, count: int = QUESTIONS) -> list[dict[str, Any]]:
        """The rows whose answer would tell most, given the last spread."""
        seen, mark = self.looks.wait(0.0), torch.from_numpy(self.tags.hand(tag))
        p = self._last.get(tag)
        if p is None or len(p) != len(seen.index):
            said = self.tags.frame()
            sure = said[f"{tag} {SURE}"].fill_null(0.5).to_numpy()[seen.index.numpy()]
            yes = (said[tag] == "yes").fill_null(False).to_numpy()[seen.index.numpy()]
            p = torch.from_numpy(np.where(yes, sure, 1 - sure).astype(np.float64))
        x = torch.cat([block[:, -8:] for block in seen.blocks.values()], 1)
        asked = ask(p, mark[seen.index], x, count)
        cards = self.cards(seen.index[asked].tolist())
        return [{**card, "p": float(p[k])} for card, k in zip(cards, asked.tolist(), strict=True)]
