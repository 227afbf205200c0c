"""Kinetics-10: videos that have left the web, and Mimetics as a test."""

import pytest

from tests.support.media import video
from tests.support.real_sets import rows
from unskew.core.errors import UserError
from unskew.data import load


def test_kinetics_counts_what_has_left_the_web_and_takes_mimetics(real_set, tmp_path_factory):
    source, _ = real_set("kinetics10")
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
