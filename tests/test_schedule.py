"""Learning rates over a run, against their closed forms."""

from math import cos, pi

import pytest
from settings import make_config, rows, run, small_config

from delaysim.errors import UserError
from delaysim.settings.config import LearnerConf
from delaysim.train.schedule import peak_share

N, WARMUP, PEAK = 50, 10, 3e-4


def rates(**settings):
    conf = LearnerConf(lr=PEAK, **{"warmup": WARMUP, **settings})
    return [conf.lr * peak_share(conf, n, N) for n in range(N)]


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_every_schedule_warms_up_linearly_to_the_peak(schedule):
    assert rates(schedule=schedule)[:11] == pytest.approx([PEAK * k / 10 for k in range(1, 11)] + [PEAK])


def test_after_warm_up_they_follow_their_formulas():
    assert rates()[10:] == [PEAK] * 40
    assert rates(schedule="linear")[10:] == pytest.approx([PEAK * (40 - k) / 40 for k in range(40)])
    half = [0.5 * (1 + cos(pi * k / 40)) for k in range(40)]
    assert rates(schedule="cosine")[10:] == pytest.approx([PEAK * h for h in half])
    assert rates(schedule="cosine", final=0.1)[10:] == pytest.approx([PEAK * (0.1 + 0.9 * h) for h in half])
    assert rates(schedule="linear", final=1.0)[10:] == pytest.approx([PEAK] * 40)


def test_the_last_update_still_learns_and_a_run_shorter_than_its_warm_up_only_warms_up():
    assert rates(schedule="linear")[-1] == pytest.approx(PEAK / 40)
    assert rates(schedule="linear", warmup=N + 5)[-1] == pytest.approx(PEAK * 50 / 55)
    assert rates(schedule="cosine", warmup=0)[0] == PEAK


def test_a_run_falls_over_its_own_updates(base_cache, tmp_path):
    run(small_config("D=1", "learner.schedule=linear", "learner.warmup=2", "lr=1e-4"), tmp_path / "run")
    found = [row["lr"] for row in rows(tmp_path / "run", "updates")]
    assert found == pytest.approx([0.5e-4, 1e-4, 1e-4, *(1e-4 * (6 - k) / 6 for k in range(1, 6))])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("learner.schedule=step", "learner.schedule=step: choose one of constant, linear, cosine"),
        ("learner.final=1.5", "learner.final=1.5: give a number from 0 to 1"),
    ],
)
def test_what_cannot_be_meant_is_refused(setting, message):
    with pytest.raises(UserError) as error:
        make_config(setting)
    assert str(error.value) == message
