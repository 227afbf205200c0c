"""Real sets in their official layout, made tiny: one maker for each."""

import json

import numpy as np
from scipy.io import savemat

from tests.support.media import picture, video
from unskew.data.sets.imagenet9 import GROUPS


def rows(data, split):
    return len(data.rows(split))


# One maker per set: writes the layout and gives the settings of the source.
def celeba(home):
    names = ["5_o_Clock_Shadow", "Heavy_Makeup", "Male"]
    lines, parts = ["30", " ".join(names)], []
    for k in range(30):
        file = f"{k + 1:06d}.jpg"
        picture(home / "img_align_celeba" / file)
        lines.append(f"{file}  -1 {'1' if k % 2 else '-1'} {'1' if k % 3 == 0 else '-1'}")
        parts.append(f"{file} {0 if k < 20 else 1 if k < 25 else 2}")
    (home / "list_attr_celeba.txt").write_text("\n".join(lines))
    (home / "list_eval_partition.txt").write_text("\n".join(parts))


def bar(home):
    for k, name in enumerate(("climbing", "diving", "fishing", "pole vaulting", "racing", "throwing")):
        for n in range(6):
            picture(home / ("train" if n < 4 else "test") / f"{name}_{n}.jpg", (40 * k, 0, 0))


def dogs_cats(home):
    for k in range(12):
        picture(home / "train" / f"cat.{k}.jpg", (20 * k,) * 3)
        picture(home / "train" / f"dog.{k}.jpg", (20 * k + 5,) * 3)


def imdb_faces(home):
    n = 60
    gender = (np.arange(n) % 2).astype(float)  # 0 woman, 1 man
    age = np.where(np.arange(n) % 4 < 2, 25, 50)
    paths = [f"{k % 10:02d}/nm{k:07d}_rm1_1970-1-1_2000.jpg" for k in range(n)]
    for path in paths:
        picture(home / "imdb_crop" / path)
    second, score = np.full(n, np.nan), np.full(n, 3.0)
    score[0], second[1], gender[2] = -np.inf, 2.0, np.nan
    age[3] = 35
    born = [719529 + (2000 - int(a) - 1970) * 365.25 + 200 for a in age]  # 719529 is the first of January 1970
    table = {
        "dob": np.array(born), "photo_taken": np.full(n, 2000), "full_path": np.array(paths, dtype=object), "gender": gender,
        "face_score": score, "second_face_score": second,
    }  # fmt: skip
    savemat(home / "imdb_crop" / "imdb.mat", {"imdb": table})


def imagenet9(home):
    ids = [f"n{k:08d}" for k in range(1000)]
    (home / "LOC_synset_mapping.txt").write_text("\n".join(f"{i} a name, another" for i in ids))
    for numbers in GROUPS.values():
        for number in numbers:
            for part, count in (("train", 3), ("val", 1)):
                for k in range(count):
                    picture(home / part / ids[number] / f"{k}.JPEG")


def coco_gender(home):
    (home / "annotations").mkdir()
    told = ["A man on a horse.", "A woman with her dog.", "A man and a woman.", "A horse."]
    for part in ("train2014", "val2014"):
        images, captions, notes = [], [], []
        for k in range(8):
            file = f"COCO_{part}_{k:012d}.jpg"
            picture(home / part / file)
            images.append({"id": k, "file_name": file})
            captions += [{"image_id": k, "caption": told[k % 4]}, {"image_id": k, "caption": "Somebody outside."}]
            notes += [
                {"image_id": k, "category_id": 1, "bbox": [2, 3, 5, 6]},
                {"image_id": k, "category_id": 1, "bbox": [4, 1, 10, 4]},
            ]
            notes.append({"image_id": k, "category_id": 18 if k % 4 == 1 else 19, "bbox": [0, 0, 2, 2]})
        kinds = [{"id": 1, "name": "person"}, {"id": 18, "name": "dog"}, {"id": 19, "name": "horse"}]
        (home / "annotations" / f"captions_{part}.json").write_text(json.dumps({"images": images, "annotations": captions}))
        (home / "annotations" / f"instances_{part}.json").write_text(json.dumps({"categories": kinds, "annotations": notes}))


def imsitu(home):
    man, woman = "n10287213", "n10787470"
    agents = [[man, man, woman], [woman, woman, ""], [man, woman, ""], ["", "", ""]]
    for file in ("train", "dev", "test"):
        found = {}
        for verb in ("cooking", "driving"):
            for k in range(4):
                name = f"{verb}_{file}{k}.jpg"
                picture(home / "of500_images_resized" / name)
                found[name] = {"verb": verb, "frames": [{"agent": a, "place": ""} for a in agents[k]]}
        (home / f"{file}.json").write_text(json.dumps(found))


def ucf101(home):
    lists = {"train": [], "test": []}
    for c, action in enumerate(("Archery", "Basketball")):
        for k in range(6):
            file = f"{action}/v_{action}_g0{k}_c01.avi"
            video(home / "UCF-101" / file)
            lists["train" if k < 4 else "test"].append(file + (f" {c + 1}" if k < 4 else ""))
    (home / "ucfTrainTestlist").mkdir()
    for kind, files in lists.items():
        (home / "ucfTrainTestlist" / f"{kind}list01.txt").write_text("\n".join(files))


def hmdb51(home):
    (home / "testTrainMulti_7030_splits").mkdir()
    for action in ("run", "walk"):
        for k in range(7):
            video(home / "hmdb51_org" / action / f"{action}{k}.avi")
        codes = "1111220"
        text = "\n".join(f"{action}{k}.avi {codes[k]} " for k in range(7))
        (home / "testTrainMulti_7030_splits" / f"{action}_test_split1.txt").write_text(text)


def kinetics10(home):
    head = "label,youtube_id,time_start,time_end,split\n"
    for part, count in (("train", 4), ("val", 2)):
        lines = ["juggling balls,zzz,1,11,x"]  # a class that is not asked for
        for label in ("writing", "driving car"):
            for k in range(count):
                lines.append(f"{label},id{part}{label[0]}{k},{k},{k + 10},x")
                if k or part == "val":  # the first training video has left the web
                    video(home / part / label / f"id{part}{label[0]}{k}_{k:06d}_{k + 10:06d}.mp4")
        (home / f"kinetics_{part}.csv").write_text(head + "\n".join(lines))
    return "classes=writing,driving car"


def something_v2(home):
    (home / "something-something-v2-labels.json").write_text(json.dumps({"Pushing something": "0", "Pulling something": "1"}))
    number = 0
    for part, count in (("train", 4), ("validation", 2)):
        entries = []
        for template in ("Pushing [something]", "Pulling [something]"):
            for _ in range(count):
                number += 1
                _webm(home / "20bn-something-something-v2" / f"{number}.webm")
                entries.append({"id": str(number), "label": "x", "template": template, "placeholders": []})
        (home / f"something-something-v2-{part}.json").write_text(json.dumps(entries))


def waterbirds(home):
    lines = ["img_id,img_filename,y,split,place,place_filename"]
    for k in range(24):
        file = f"{k // 6:03d}.Bird/bird_{k}.jpg"
        picture(home / file, (80 * (k % 2), 0, 0))
        lines.append(f"{k},{file},{k % 2},{0 if k < 12 else 1 if k < 18 else 2},{int(k % 3 == 0)},/x/y.jpg")
    (home / "metadata.csv").write_text("\n".join(lines))


def bffhq(home):
    for k in range(12):
        picture(home / "0.5pct" / "align" / str(k % 2) / f"{k:05d}_{k % 2}_{k % 2}.png")
    picture(home / "0.5pct" / "conflict" / "0" / "00020_0_1.png")
    for k in range(4):
        picture(home / "valid" / f"{k:05d}_{k % 2}_{k // 2}.png")
        picture(home / "test" / f"{k:05d}_{k % 2}_{k // 2}.png")


def urbancars(home):
    for place, split in (
        ("bg-0.95_co_occur_obj-0.95", "train"),
        ("bg-0.5_co_occur_obj-0.5", "val"),
        ("bg-0.5_co_occur_obj-0.5", "test"),
    ):
        for y in ("urban", "country"):
            for bg in ("urban", "country"):
                for k in range(2):
                    picture(home / place / split / f"obj-{y}_bg-{bg}_co_occur_obj-{y}" / f"{k}.jpg")


def nico_plus(home):
    for context in ("autumn", "grass", "water"):
        for name in ("cat", "dog", "hot air balloon"):
            for k in range(4):
                picture(home / "train" / context / name / f"{k}.jpg")


def _webm(path):
    made = path.with_suffix(".avi")
    video(made)
    made.rename(path)  # readers look into the file, not at its name


MAKE = {
    "celeba": celeba, "bar": bar, "dogs-cats": dogs_cats, "imdb-faces": imdb_faces, "imagenet9": imagenet9,
    "coco-gender": coco_gender, "imsitu": imsitu, "ucf101": ucf101, "hmdb51": hmdb51, "kinetics10": kinetics10,
    "something-v2": something_v2, "waterbirds": waterbirds, "bffhq": bffhq, "urbancars": urbancars, "nico-plus": nico_plus,
}  # fmt: skip
