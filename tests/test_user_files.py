"""A user's file as users write them: copied from a built-in, by relative path, with errors of every kind."""

from pathlib import Path

import pytest
from settings import make_config

import delaysim.estimators.tis as tis
from delaysim.errors import UserError
from delaysim.settings.chosen import chosen_estimator, load_estimator
from delaysim.settings.identity import run_id

GOOD = "def coefficients(batch, params):\n    return batch.mask\n"
CAPPED = 'from dataclasses import dataclass\nDIAL = ("cap",)\n@dataclass\nclass Params:\n    cap: float = 2.0\n' + GOOD


def test_a_users_file_may_begin_as_every_built_in_does(tmp_path):
    """A copy of a built-in: `from __future__ import annotations` above a dataclass."""
    (tmp_path / "mine.py").write_text(Path(tis.__file__).read_text())
    assert load_estimator(tmp_path / "mine.py", {"cap": 3.0}).params.cap == 3.0


def test_a_relative_path_names_the_line_too(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("x = 1\ny = 1 / 0\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"^mine\.py, line 2: ZeroDivisionError"):
        load_estimator(Path("mine.py"), {})


def test_a_syntax_error_in_a_helper_is_not_said_to_be_in_the_users_file(tmp_path, monkeypatch):
    (tmp_path / "my_helper.py").write_text("x = 1\ny = 2\nz = (\n")
    (tmp_path / "mine.py").write_text(f"import my_helper\n{GOOD}")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserError, match=r"mine\.py, line 1: "):
        load_estimator(tmp_path / "mine.py", {})


def test_an_error_of_several_lines_is_one_line(tmp_path):
    (tmp_path / "mine.py").write_text('raise ValueError("one\\ntwo")\n')
    with pytest.raises(UserError) as error:
        load_estimator(tmp_path / "mine.py", {})
    assert "\n" not in str(error.value)


def test_a_dial_that_is_no_field_is_a_user_error(tmp_path):
    text = (
        f'from dataclasses import dataclass\nDIAL = ("capp",)\n@dataclass\nclass Params:\n    cap: float = 2.0\n{GOOD}'
    )
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(UserError, match=r"mine\.py"):
        load_estimator(tmp_path / "mine.py", {}, 0.1)


def test_a_settings_number_is_one_number_however_it_is_spelled(tmp_path):
    (tmp_path / "mine.py").write_text(GOOD)
    custom = ("estimator=custom", f"estimator.path={tmp_path / 'mine.py'}")
    ids = {run_id(make_config(*custom, f"+estimator.settings.cap={text}")) for text in ("2", "2.0")}
    assert len(ids) == 1


def test_a_groups_own_key_wins_over_its_short_name(tmp_path):
    """So it is for every built-in."""
    text = (
        f'from dataclasses import dataclass\nDIAL = ("cap",)\n@dataclass\nclass Params:\n    cap: float = 2.0\n{GOOD}'
    )
    (tmp_path / "mine.py").write_text(text)
    custom = ("estimator=custom", f"estimator.path={tmp_path / 'mine.py'}")
    assert make_config("estimator=tis", "eps=0.5", "estimator.cap=3").estimator.cap == 3
    cfg = make_config(*custom, "eps=0.5", "+estimator.settings.cap=3")
    assert chosen_estimator(cfg.estimator).params.cap == 3


def test_an_edited_file_is_another_run_within_one_process(tmp_path):
    path = tmp_path / "mine.py"
    ids = []
    for text in (GOOD, GOOD + "# more\n"):
        path.write_text(text)
        ids.append(run_id(make_config("estimator=custom", f"estimator.path={path}")))
    assert ids[0] != ids[1]


def test_a_file_that_exits_does_not_end_the_command(tmp_path):
    (tmp_path / "mine.py").write_text("raise SystemExit(3)\n")
    with pytest.raises(UserError, match=r"mine\.py, line 1: SystemExit: 3"):
        load_estimator(tmp_path / "mine.py", {})
