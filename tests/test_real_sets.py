"""Real sets in their official layout, made tiny by the tests: read as the papers use them, refused with a reason."""

import json

import av
import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import savemat

from unskew.core import registry
from unskew.core.errors import UserError
from unskew.data import load
from unskew.data.readers.clips import places, read_clip
from unskew.data.sets import _contract as sets
from unskew.data.sets.imagenet9 import GROUPS

REAL = [n for n in registry.names("data") if sets.load(n).on_disk]


def picture(path, colour=(90, 90, 90), side=24):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (side, side), colour).save(path)


def video(path, frames=12, side=32, start=0):
    """A video whose frame k is grey of level start + 20 k."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as out:
        track = out.add_stream("mpeg4", rate=12)
        track.width = track.height = side
        track.pix_fmt = "yuv420p"
        track.bit_rate = 1_000_000
        for k in range(frames):
            level = np.full((side, side, 3), min(start + 20 * k, 255), dtype=np.uint8)
            for packet in track.encode(av.VideoFrame.from_ndarray(level, format="rgb24")):
                out.mux(packet)
        for packet in track.encode():
            out.mux(packet)


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


def _webm(path):
    made = path.with_suffix(".avi")
    video(made)
    made.rename(path)  # readers look into the file, not at its name


MAKE = {
    "celeba": celeba, "bar": bar, "dogs-cats": dogs_cats, "imdb-faces": imdb_faces, "imagenet9": imagenet9,
    "coco-gender": coco_gender, "imsitu": imsitu, "ucf101": ucf101, "hmdb51": hmdb51, "kinetics10": kinetics10,
    "something-v2": something_v2,
}  # fmt: skip


@pytest.fixture
def made(tmp_path):
    def build(name):
        more = MAKE[name](tmp_path)
        return f"{name}:root={tmp_path}" + (f",{more}" if more else ""), tmp_path

    return build


def test_every_real_set_has_a_maker_here():
    assert sorted(MAKE) == sorted(REAL)


@pytest.mark.parametrize("name", REAL)
def test_it_is_read_and_checked(name, made, unskew):
    source, home = made(name)
    data = load(source, size=24)
    assert data.name == name
    assert rows(data, "train")
    assert rows(data, "test")
    x, fine = data.inputs.rows(torch.arange(len(data)))
    assert fine.all()
    assert x.shape[-1] == 24
    clips = len(data.shape) == 4
    assert data.shape == ((8, 3, 24, 24) if clips else (3, 24, 24))
    if name != "kinetics10":  # whose classes are limited by a setting here
        said = unskew("data", name, "--root", home, "--check")
        assert f"{name}: complete" in said.stdout


@pytest.mark.parametrize("name", REAL)
def test_a_missing_part_is_named(name, tmp_path, unskew):
    needs = sets.load(name).needs
    with pytest.raises(UserError, match="is read from disk: name its folder"):
        load(name)
    with pytest.raises(UserError, match=rf"{name}: .* lacks {needs[0].path}"):
        load(f"{name}:root={tmp_path}")
    said = unskew("data", name, "--root", tmp_path, "--check", expect=2)
    assert f"{name}: not complete" in said.stderr
    assert said.stdout.count("MISSING") == len(needs)


def test_celeba_attributes_and_partition(made):
    source, home = made("celeba")
    data = load(source)
    assert data.classes == ("not Heavy_Makeup", "Heavy_Makeup")
    assert data.y.tolist() == [k % 2 for k in range(30)]
    assert data.bias[:, 0].tolist() == [int(k % 3 == 0) for k in range(30)]
    assert [rows(data, s) for s in ("train", "val", "test")] == [20, 5, 5]
    with pytest.raises(UserError, match="no attribute 'Smilin'"):
        load(f"{source},target=Smilin")
    path = home / "list_attr_celeba.txt"
    path.write_text(path.read_text().replace("000003.jpg  -1 -1", "000003.jpg  -1 7"))
    with pytest.raises(UserError, match=r"list_attr_celeba.txt:5: .* is not a file name and 3 attributes"):
        load(source)
    celeba(home)
    (home / "list_eval_partition.txt").write_text("000001.jpg 0\n")
    with pytest.raises(UserError, match=r"no split for 000002.jpg and 28 more"):
        load(source)


def test_lists_that_name_absent_files_are_refused(made):
    source, home = made("celeba")
    (home / "img_align_celeba" / "000004.jpg").unlink()
    with pytest.raises(
        UserError, match=r"1 of 30 files that the lists name are not in .*, the first is img_align_celeba/000004.jpg"
    ):
        load(source)


def test_dogs_and_cats_by_brightness_and_by_lists(made):
    source, home = made("dogs-cats")
    data = load(f"{source},share=0.25")
    dark, bright = data.bias[:, 0] == 1, data.bias[:, 0] == 0
    dog = data.y == 1
    train = data.split != 2
    assert torch.equal(train, (dog & bright) | (~dog & dark))  # TB1: dark cats and bright dogs
    assert int(bright.sum()) == int(dark.sum()) == 6
    other = load(f"{source},share=0.25,set=TB2")
    assert torch.equal(other.split == 2, train)
    (home / "b.txt").write_text("cat.1.jpg\ndog.1.jpg\ncat.2.jpg\n")
    (home / "d.txt").write_text("cat.3.jpg\ndog.3.jpg\ncat.4.jpg\n")
    listed = load(f"{source},bright={home / 'b.txt'},dark={home / 'd.txt'}", holdout=0.0)
    assert len(listed) == 6
    (home / "d.txt").write_text("cat.1.jpg\n")
    with pytest.raises(UserError, match=r"cat.1.jpg is in both lists"):
        load(f"{source},bright={home / 'b.txt'},dark={home / 'd.txt'}")


def test_imdb_ages_genders_and_what_is_left_out(made):
    source, home = made("imdb-faces")
    data = load(source)
    train = data.split != 2
    woman, young = data.y == 0, data.bias[:, 0] == 0
    assert torch.equal(woman[train], young[train])  # EB1: young women and old men
    assert (woman != young)[data.split == 2].any()
    told = " ".join(data.notes)
    for why in ("score below the limit", "second face", "no gender", "age between the limits"):
        assert f"1 faces left out: {why}" in told
    aged = load(f"{source},target=age,set=EB2")
    assert aged.classes == ("young", "old")
    assert aged.bias_names == ("gender",)
    (home / "imdb_crop" / "imdb.mat").write_bytes(b"cut")
    with pytest.raises(UserError, match="not the table of IMDB-WIKI"):
        load(source)


def test_imagenet_groups_and_its_other_tests(made, tmp_path_factory):
    source, home = made("imagenet9")
    data = load(source)
    assert rows(data, "test") == sum(map(len, GROUPS.values()))
    assert data.classes[0] == "dog"
    assert data.paths[0].split("/")[-2] == "n00000151"
    hard = tmp_path_factory.mktemp("a")
    picture(hard / "n00000030" / "x.jpg")
    bad = tmp_path_factory.mktemp("c")
    picture(bad / "weather" / "fog" / "3" / "n00000281" / "x.JPEG")
    more = load(f"{source},a={hard},c={bad},corruption=fog")
    assert [data.classes[int(more.y[more.rows(s)][0])] for s in ("imagenet_a", "imagenet_c")] == ["frog", "cat"]
    with pytest.raises(UserError, match="no folder snow under"):
        load(f"{source},c={bad},corruption=snow")
    (home / "LOC_synset_mapping.txt").write_text("n01440764 tench\n")
    with pytest.raises(UserError, match="1 ids, not the thousand in order"):
        load(source)


def test_coco_genders_by_captions(made):
    source, home = made("coco-gender")
    data = load(source)
    assert data.classes == ("dog", "horse")
    assert data.multi_label
    assert [rows(data, s) for s in ("train", "val", "test")] == [4, 2, 2]
    assert data.bias_values == (("man", "woman"),)
    assert data.bias[data.rows("train"), 0].tolist() == [0, 1, 0, 1]
    assert data.y[data.rows("train")].tolist() == [[0, 1], [1, 0], [0, 1], [1, 0]]
    assert "4 images left out: captions mention both genders" in data.notes
    assert "4 images left out: captions mention none" in data.notes
    assert data.columns.row(0, named=True) == {"x0": 2, "y0": 1, "x1": 14, "y1": 9}  # around both people
    hidden = load(source, hide="black")
    assert hidden.inputs.rows(torch.tensor([0]))[0][0, :, 5, 8].tolist() == [0, 0, 0]
    path = home / "annotations" / "captions_train2014.json"
    path.write_text(path.read_text()[:200])
    with pytest.raises(UserError, match=r"captions_train2014.json: not a whole JSON file .* was its download cut short"):
        load(source)
    path.write_text("[]")
    with pytest.raises(UserError, match="no list 'images'; is it an annotation file of COCO"):
        load(source)


def test_imsitu_agents(made):
    source, home = made("imsitu")
    data = load(source)
    assert data.classes == ("cooking", "driving")
    assert [rows(data, s) for s in ("train", "val", "test")] == [4, 4, 4]
    assert data.bias[data.rows("train"), 0].tolist() == [0, 1, 0, 1]
    assert sorted(data.notes) == ["6 images left out: agents of both gender", "6 images left out: agents of no gender"]
    with pytest.raises(UserError, match="no row left"):
        load(f"{source},least=2")
    (home / "dev.json").write_text('{"a.jpg": {}}')
    with pytest.raises(UserError, match=r"a.jpg has no verb and frames"):
        load(source)


def test_official_splits_of_videos(made):
    source, home = made("hmdb51")
    data = load(source, size=24)
    assert len(data) == 12  # code 0 is unused
    assert rows(data, "test") == 4
    with pytest.raises(UserError, match="fold=4: must be 1, 2 or 3"):
        load(f"{source},fold=4")
    with pytest.raises(UserError, match=r"no file ACTION_test_split2.txt"):
        load(f"{source},fold=2")
    (home / "testTrainMulti_7030_splits" / "run_test_split1.txt").write_text("run0.avi 5\n")
    with pytest.raises(UserError, match=r"run_test_split1.txt:1: 'run0.avi 5' is not VIDEO.avi and 0, 1 or 2"):
        load(source)


def test_kinetics_counts_what_has_left_the_web_and_takes_mimetics(made, tmp_path_factory):
    source, _ = made("kinetics10")
    data = load(source, size=24)
    assert "2 videos of the train list are not on disk" in data.notes
    assert data.classes == ("writing", "driving car")
    other = tmp_path_factory.mktemp("mimetics")
    (other / "mimetics_v1.0.csv").write_text("label,youtube_id,time_start,time_end\nwriting,m1,2,8\n")
    video(other / "videos" / "m1_000002_000008.mp4")
    more = load(f"{source},mimetics={other}", size=24)
    assert rows(more, "mimetics") == 1
    with pytest.raises(UserError, match=r"lacks mimetics_v1.0.csv or videos/"):
        load(f"{source},mimetics={other / 'videos'}")


def test_frames_are_those_asked_for(tmp_path):
    video(tmp_path / "v.avi", frames=12)
    clip = read_clip(str(tmp_path / "v.avi"), 4, (16, 16)).float().mean((1, 2, 3))
    expected = torch.tensor([20.0 * k for k in places(12, 4, "uniform", "")])
    assert (clip - expected).abs().max() < 8  # as near as the codec comes
    for k in range(6):
        picture(tmp_path / "f" / f"{k:03d}.png", (40 * k,) * 3)
    folder = read_clip(str(tmp_path / "f"), 3, (16, 16)).float().mean((1, 2, 3))
    assert folder.tolist() == [40.0, 120.0, 200.0]
    assert places(100, 5, "random", "a") != places(100, 5, "random", "b")
    assert all(20 * k <= p < 20 * (k + 1) for k, p in enumerate(places(100, 5, "random", "a")))


def test_users_own_clips(tmp_path, unskew):
    for c, name in enumerate(("up", "down")):
        for k in range(8):
            video(tmp_path / "d" / name / f"{k}.avi", start=100 * c)
    with pytest.raises(UserError, match=r"videos, no images; say how many frames to take of each with data.frames=8"):
        load(tmp_path / "d")
    data = load(tmp_path / "d", frames=4, size=16)
    assert data.shape == (4, 3, 16, 16)
    streamed = load(tmp_path / "d", frames=4, size=16, mode="stream")
    assert torch.equal(streamed.inputs.rows(torch.arange(16))[0], data.inputs.rows(torch.arange(16))[0])
    said = unskew(
        "train", tmp_path / "d", "--model", "resnet", "model.kind=3d", "model.width=4", "data.frames=4", "data.size=16",
        "train.steps=2", "train.batch=4", "--out", tmp_path / "run",
    )  # fmt: skip
    assert said.returncode == 0, said.stderr


def test_videos_that_cannot_be_read_are_counted_or_stop_it(tmp_path):
    for name in ("up", "down"):
        for k in range(8):
            video(tmp_path / name / f"{k}.avi")
    (tmp_path / "up" / "3.avi").write_bytes(b"no video at all")
    whole = (tmp_path / "up" / "4.avi").read_bytes()
    (tmp_path / "up" / "4.avi").write_bytes(whole[:200])  # a header and nothing after it
    with pytest.raises(UserError, match=r"2 of 16 images cannot be decoded"):
        load(tmp_path, frames=4, size=16)
    data = load(tmp_path, frames=4, size=16, max_bad=0.2)
    assert data.notes[-1] == "2 clips cannot be decoded and are left out"
    assert [data.paths[k].rpartition("/")[2] for k, _ in data.unreadable] == ["3.avi", "4.avi"]


def test_a_video_without_frames_is_none(tmp_path):
    with av.open(str(tmp_path / "sound.wav"), "w") as out:
        track = out.add_stream("pcm_s16le", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), dtype=np.int16), format="s16", layout="mono")
        frame.rate = 8000
        for packet in (*track.encode(frame), *track.encode()):
            out.mux(packet)
    with pytest.raises(ValueError, match="without a picture track"):
        read_clip(str(tmp_path / "sound.wav"), 4, (16, 16))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="a folder without frames"):
        read_clip(str(tmp_path / "empty"), 4, (16, 16))
