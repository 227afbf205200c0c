r"""coco-gender: objects in pictures of men or women, read from disk. Several labels per row; the bias is the gender.

.. math::  y_{ik} = [\text{object } k \text{ in image } i], \qquad b_i = \text{the one gender that captions of image } i \text{ mention}

The labels are the 79 objects of COCO other than person. The gender is decided by the words below, matched in the lower-cased
captions as whole words. Images whose captions mention both genders, or neither, are left out and counted; so are images without
an annotated person. train2014 is the training split; val2014, in the order of ids, alternates between val and test. The root
holds train2014/, val2014/ and annotations/, as distributed. Columns for `data.hide`: x0, y0, x1, y1, one box around all people
(the paper's blackout-box); `outline`, the people's outlines (`data.mask=outline`: blur-segm, blackout-segm); and, if
annotations/person_keypoints_*.json are there, `face_x0` to `face_y1`, a box around the eyes, ears and nose of every person
(`data.boxes=face_x0,face_y0,face_x1,face_y1`).

`lists=DIR` takes the images of train.txt, val.txt and test.txt in that folder, an id or a file name per line, in place of these
splits: the authors publish theirs with their code, for the original set and for alpha 3, 2 and 1. A number of training images that
is none of theirs (22,826; 17,474; 15,473; 6,156) is noted.

man: man, men, boy, boys, gentleman, gentlemen, guy, guys, male, males, he, his, him, father, husband, son
woman: woman, women, girl, girls, lady, ladies, female, females, she, her, hers, mother, wife, daughter

Source: Lin et al., "Microsoft COCO", ECCV 2014 (CC BY 4.0 annotations); the task: Wang et al., "Balanced datasets are not
enough", ICCV 2019, after Zhao et al., "Men also like shopping", EMNLP 2017.
Differs: the papers publish a list of images, not the rule; theirs looks for man and woman in captions. Without `lists`, the split of
the validation images is ours too. The authors' faces come from an unreleased detector, ours from COCO's keypoints. People drawn as
a crowd have a box instead of an outline.
"""

import dataclasses
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unskew.core.errors import UserError
from unskew.data.readers.listing import Listing, Need, Row, check_root, chosen_rows, read_json

PARTS = ("train2014", "val2014")
NEEDS = tuple(
    need
    for part in PARTS
    for need in (
        Need(f"{part}/", f"images COCO_{part}_NUMBER.jpg"),
        Need(f"annotations/captions_{part}.json", "five captions of every image"),
        Need(f"annotations/instances_{part}.json", "objects of every image"),
    )
)
WORDS = {
    "man": "man men boy boys gentleman gentlemen guy guys male males he his him father husband son",
    "woman": "woman women girl girls lady ladies female females she her hers mother wife daughter",
}
GENDER = {word: gender for gender, words in WORDS.items() for word in words.split()}
PERSON = "person"
PUBLISHED = {22_826: "original", 17_474: "alpha 3", 15_473: "alpha 2", 6_156: "alpha 1"}  # training images, Table 1
HEAD = 5  # the first five keypoints of a person: nose, eyes and ears


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    root: str = ""  # folder of the data set
    gender_label: bool = False  # woman is a label too, the last: the models of the paper that predict gender
    lists: str = ""  # folder of train.txt, val.txt and test.txt with the images to use; empty: all, by the rule


def listing(cfg: Config) -> Listing:
    root = check_root(cfg.root, NEEDS, "coco-gender")
    rows: list[Row] = []
    left_out = {"captions mention both genders": 0, "captions mention none": 0, "no person annotated": 0}
    classes: tuple[str, ...] = ()
    for part in PARTS:
        images, objects = _part(root, part, left_out)
        if classes and objects != classes:
            raise UserError(f"coco-gender: the two instances files of {root} name different objects")
        classes = objects
        for place, (file, labels, gender, box) in enumerate(images):
            split = "train" if part == "train2014" else ("val", "test")[place % 2]
            rows.append(Row(f"{part}/{file}", labels, split, {"gender": gender}, box))
    notes = tuple(f"{n} images left out: {why}" for why, n in left_out.items() if n)
    if cfg.lists:
        rows, notes = chosen_rows(rows, cfg.lists, "coco-gender", PUBLISHED)
    if cfg.gender_label:
        classes = (*classes, "woman")
        rows = [dataclasses.replace(r, label=[*r.label, *(["woman"] if r.bias["gender"] == "woman" else [])]) for r in rows]
    return Listing("coco-gender", root, rows, classes, {"gender": ("man", "woman")}, notes=notes)


def gender_of(captions: list[str]) -> str:
    """man, woman, both or none.

    >>> gender_of(["A man rides a horse.", "Someone on a horse"])
    'man'
    >>> gender_of(["A woman and her husband"])
    'both'
    """
    genders = {GENDER[word] for text in captions for word in re.findall(r"[a-z]+", text.lower()) if word in GENDER}
    return genders.pop() if len(genders) == 1 else "both" if genders else "none"


Found = tuple[str, list[str], str, dict[str, Any]]  # file, objects, gender, columns


def _part(root: Path, part: str, left_out: dict[str, int]) -> tuple[list[Found], tuple[str, ...]]:
    captions: dict[int, list[str]] = defaultdict(list)
    objects: dict[int, set[str]] = defaultdict(set)
    people: dict[int, list[list[float]]] = defaultdict(list)  # x, y, width, height
    outlines: dict[int, list[list[float]]] = defaultdict(list)
    captioned = _entries(root / "annotations" / f"captions_{part}.json", ("images", "annotations"))
    instances = _entries(root / "annotations" / f"instances_{part}.json", ("categories", "annotations"))
    for note in captioned["annotations"]:
        captions[note["image_id"]].append(note["caption"])
    names = {c["id"]: c["name"] for c in instances["categories"]}
    for note in instances["annotations"]:
        objects[note["image_id"]].add(names[note["category_id"]])
        if names[note["category_id"]] == PERSON:
            people[note["image_id"]].append(note["bbox"])
            outlines[note["image_id"]] += _polygons(note)
    faces = _faces(root / "annotations" / f"person_keypoints_{part}.json")
    found: list[Found] = []
    for image in sorted(captioned["images"], key=lambda i: int(i["id"])):
        gender, here = gender_of(captions[image["id"]]), objects[image["id"]]
        if PERSON not in here:
            left_out["no person annotated"] += 1
        elif gender == "both":
            left_out["captions mention both genders"] += 1
        elif gender == "none":
            left_out["captions mention none"] += 1
        else:
            columns = {**_around(people[image["id"]]), "outline": outlines[image["id"]]}
            if faces is not None:
                columns |= {
                    f"face_{side}": [box[k] for box in faces[image["id"]]] for k, side in enumerate(("x0", "y0", "x1", "y1"))
                }
            found.append((image["file_name"], sorted(here - {PERSON}), gender, columns))
    return found, tuple(n for _, n in sorted(names.items()) if n != PERSON)


def _polygons(note: dict[str, Any]) -> list[list[float]]:
    """The outline of a person: its polygons, or the box of a crowd, whose outline is run-length encoded."""
    segmentation = note.get("segmentation")
    if isinstance(segmentation, list) and segmentation:
        return [[float(v) for v in polygon] for polygon in segmentation if len(polygon) >= 6]
    x, y, width, height = (float(v) for v in note["bbox"])
    return [[x, y, x + width, y, x + width, y + height, x, y + height]]


def _faces(path: Path) -> dict[int, list[tuple[float, float, float, float]]] | None:
    """Boxes of faces by image: around the keypoints of the head that are marked, half as wide again; None without the file."""
    if not path.is_file():
        return None
    faces: dict[int, list[tuple[float, float, float, float]]] = defaultdict(list)
    for note in _entries(path, ("annotations",))["annotations"]:
        points = note.get("keypoints", [])
        marked = [(points[3 * k], points[3 * k + 1]) for k in range(HEAD) if len(points) >= 3 * HEAD and points[3 * k + 2] > 0]
        if len(marked) >= 2:
            (x0, x1), (y0, y1) = ((min(v), max(v)) for v in zip(*marked, strict=True))
            reach = 0.75 * max(x1 - x0, y1 - y0)
            x, y = (x0 + x1) / 2, (y0 + y1) / 2
            faces[note["image_id"]].append((max(0.0, x - reach), max(0.0, y - reach), x + reach, y + reach))
    return faces


def _around(boxes: list[list[float]]) -> dict[str, float]:
    """One box around all boxes."""
    return {
        "x0": min(b[0] for b in boxes), "y0": min(b[1] for b in boxes),
        "x1": max(b[0] + b[2] for b in boxes), "y1": max(b[1] + b[3] for b in boxes),
    }  # fmt: skip


def _entries(path: Path, keys: tuple[str, ...]) -> dict[str, Any]:
    loaded = read_json(path)
    missing = [k for k in keys if not isinstance(loaded, dict) or not isinstance(loaded.get(k), list)]
    if missing:
        raise UserError(f"{path}: no list {missing[0]!r}; is it a COCO annotation file?")
    return dict(loaded)
