"""A loss in a user's own file: the same bytes as the built-in it imitates, settings, run ids, and every bad file."""

import json
import shutil
from pathlib import Path

import pytest
from settings import fingerprint, make_config, run, small_config

from delaysim.errors import UserError
from delaysim.settings.chosen import chosen_estimator, load_estimator
from delaysim.settings.identity import estimator_name, run_id, run_path, threshold

TIS = '''"""Truncated importance sampling, written again without any of ours."""

from dataclasses import dataclass
from math import log

SCOPE, LEVEL, NEEDS, DIAL = "response", "trajectory", (), ("cap",)


@dataclass
class Params:
    cap: float = 8.0


def coefficients(batch, params):
    log_rho = ((batch.logp - batch.behaviour) * batch.mask).sum(-1, keepdim=True)
    return log_rho.clamp(max=log(params.cap)).exp() * batch.mask
'''
EPS = TIS.replace('NEEDS, DIAL = "response", "trajectory", (), ("cap",)', 'NEEDS = "response", "trajectory", ()')
EPS = EPS.replace("cap: float = 8.0", "eps: float = 0.28").replace("log(params.cap)", "log(1 + params.eps)")
CHOSEN = ("D=4", "updates=6", "lr=3e-3", "learner.warmup=0", "evaluation.every=null")


@pytest.fixture
def file(tmp_path):
    """Writes a user's file and gives its path."""

    def write(text=TIS, name="mine.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


def custom(path, *overrides):
    return small_config("estimator=custom", f"estimator.path={path}", *CHOSEN, *overrides)


@pytest.fixture(scope="module")
def builtin(base_cache, tmp_path_factory):
    """Fingerprints of the built-in tis by cap."""
    found = {}
    for cap in (8.0, 1.2):
        path = tmp_path_factory.mktemp("builtin") / "run"
        assert run(small_config("estimator=tis", f"estimator.cap={cap}", *CHOSEN), path).state == "done"
        found[cap] = fingerprint(path)
    assert found[8.0] != found[1.2]
    return found


@pytest.mark.slow
def test_it_gives_the_bytes_of_the_built_in_it_imitates(builtin, file, tmp_path):
    """Rows, evaluations, recorded ratios, weights and optimiser; the file has some fifteen lines."""
    assert len([line for line in TIS.splitlines() if line.strip()]) < 15
    assert run(custom(file()), tmp_path / "run").state == "done"
    assert fingerprint(tmp_path / "run") == builtin[8.0]


@pytest.mark.parametrize(
    ("text", "setting"),
    [(TIS, "eps=0.2"), (TIS, "+estimator.settings.cap=1.2"), (EPS, "eps=0.2")],
    ids=["eps sets cap", "setting", "eps sets eps"],
)
@pytest.mark.slow
def test_settings_and_eps_reach_it(builtin, file, tmp_path, text, setting):
    assert run(custom(file(text), setting), tmp_path / "run").state == "done"
    assert fingerprint(tmp_path / "run") == builtin[1.2]


def test_its_params_are_what_was_asked_for(file):
    tis, eps = file(), file(EPS, "other.py")
    for overrides, wanted in (((), 8.0), (("eps=0.5",), 1.5), (("+estimator.settings.cap=3",), 3)):
        assert chosen_estimator(custom(tis, *overrides).estimator).params.cap == wanted
    for overrides, wanted in (((), 0.28), (("eps=0.5",), 0.5), (("+estimator.settings.eps=0.4",), 0.4)):
        assert chosen_estimator(custom(eps, *overrides).estimator).params.eps == wanted


def test_without_params_it_gets_its_settings_as_they_are(file):
    path = file("def coefficients(batch, params):\n    return params.scale * batch.mask\n")
    estimator = load_estimator(path, {"scale": 2.5})
    assert estimator.params.scale == 2.5
    assert (estimator.scope, estimator.level, estimator.mass_bound) == ("batch", "token", None)


# run ids


def name(path, *overrides):
    return run_id(make_config("estimator=custom", f"estimator.path={path}", *overrides))


def test_the_run_id_has_the_files_stem_and_its_content_not_its_place(file, tmp_path, monkeypatch):
    one, moved = file(TIS, "a/mine.py"), file(TIS, "b/mine.py")
    changed, renamed = file(TIS + "\n# more\n", "c/mine.py"), file(TIS, "d/other.py")
    assert name(one).startswith("mine-D128-G8-tiny-chain-s0-")
    assert name(one) == name(moved)
    monkeypatch.chdir(tmp_path / "a")
    assert name("mine.py") == name(one)
    key = {path: name(path).rsplit("-", 1)[1] for path in (one, changed, renamed)}
    assert key[one] != key[changed]
    assert name(renamed) == f"other-D128-G8-tiny-chain-s0-{key[one]}"


def test_the_run_id_has_its_settings(file):
    path = file()
    settings = [(), ("eps=0.5",), ("+estimator.settings.cap=1.5",), ("+estimator.settings.cap=3",), ("eps=0.25",)]
    assert len({name(path, *overrides) for overrides in settings}) == len(settings)
    assert name(path, "eps=0.5").startswith("mine-D128-eps0.5-G8-")
    assert name(path, "eps=0.5") == name(path, "estimator.eps=5e-1")
    cfg = make_config("estimator=custom", f"estimator.path={path}", "eps=0.5", "rule=gac", "runs_dir=/r")
    assert (estimator_name(cfg), threshold(cfg)) == ("mine", 0.5)
    assert str(run_path(cfg)).startswith("/r/fixed_delay/mine-gac-D128-eps0.5-")


@pytest.mark.slow
def test_a_run_of_it_goes_on_in_another_place(builtin, file, tmp_path, monkeypatch):
    """Stopped, the file moved, gone on: the same bytes."""
    from delaysim.run import experiment

    train = experiment.Experiment._train

    def stop_then_train(self, asked, *meanwhile):
        self.stopping = asked.update == 2
        train(self, asked, *meanwhile)

    with monkeypatch.context() as patch:
        patch.setattr(experiment.Experiment, "_train", stop_then_train)
        assert run(custom(file()), tmp_path / "run").state == "interrupted"
    elsewhere = tmp_path / "elsewhere/mine.py"
    elsewhere.parent.mkdir()
    shutil.move(file(), elsewhere)
    assert run(custom(elsewhere), tmp_path / "run").state == "done"
    assert fingerprint(tmp_path / "run") == builtin[8.0]


# bad files

GOOD = "def coefficients(batch, params):\n    return batch.mask\n"
DATACLASS = "from dataclasses import dataclass\n@dataclass\nclass Params:\n    cap: float = 2.0\n"
BAD = {
    "syntax": ("x = 1\ndef coefficients(batch, params)\n    return 1\n", {}, ", line 2: SyntaxError: "),
    "indentation": ("def coefficients(batch, params):\nreturn 1\n", {}, ", line 2: IndentationError: "),
    "no coefficients": ("x = 1\n", {}, ": define coefficients(batch, params)"),
    "not a function": ("coefficients = 3\n", {}, ": define coefficients(batch, params)"),
    "import": (f"x = 1\n\ny = 1 / 0\n{GOOD}", {}, ", line 3: ZeroDivisionError: division by zero"),
    "import of nothing": (f"{GOOD}import no_such_package_here\n", {}, ", line 3: ModuleNotFoundError: No module named"),
    "class": (f"class Params:\n    cap = 2.0\n{GOOD}", {}, ": Params must be a dataclass; write @dataclass above it"),
    "setting": (DATACLASS + GOOD, {"cup": 3}, ": its Params has no cup; choose one of cap"),
    "scope": (f'SCOPE = "respons"\n{GOOD}', {}, ": SCOPE = 'respons'; choose one of response, group, batch"),
    "level": (f'LEVEL = "word"\n{GOOD}', {}, ": LEVEL = 'word'; choose one of token, sequence, trajectory, none"),
    "default": (DATACLASS.replace(" = 2.0", "") + GOOD, {}, "'cap'; give every field of Params a default"),
    "choice": (f'CHOICES = {{"cap": ("a", "b")}}\n{DATACLASS}{GOOD}', {"cap": "c"}, ": cap=c: choose one of a, b"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_one_line_that_names_it(file, case):
    text, settings, message = BAD[case]
    path = file(text)
    with pytest.raises(UserError) as error:
        load_estimator(path, settings)
    assert str(error.value).startswith(str(path))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("path", "message"),
    [("nowhere.py", "nowhere.py is not a file"), (".", ". is not a file: give the path of a Python")],
)
def test_what_is_no_file_is_refused(path, message):
    with pytest.raises(UserError, match=message):
        load_estimator(Path(path), {})


def test_a_file_that_is_no_python_file_is_refused(file):
    with pytest.raises(UserError, match=r"mine\.txt is not a Python file: its name must end in \.py"):
        load_estimator(file(TIS, "mine.txt"), {})


def test_eps_for_a_file_without_a_threshold_is_refused(file):
    plain = file(DATACLASS + GOOD)
    with pytest.raises(
        UserError, match=r"^eps=0\.3: .*mine\.py has no threshold: give its Params a field eps, or drop"
    ):
        chosen_estimator(custom(plain, "eps=0.3").estimator)
    assert chosen_estimator(custom(plain).estimator).eps is None


@pytest.mark.parametrize("case", ["syntax", "import", "no coefficients"])
def test_a_run_with_a_bad_file_does_not_begin(base_cache, file, tmp_path, case):
    with pytest.raises(UserError, match=r"mine\.py"):
        run(custom(file(BAD[case][0])), tmp_path / "run")
    assert not (tmp_path / "run").exists()


FAULTS = {
    "shape": ("return batch.rho", "mine gave coefficients (2, 4), not (2, 4,"),
    "error": (
        "return batch.mask / params.cap",
        "AttributeError: 'types.SimpleNamespace' object has no attribute 'cap'",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
@pytest.mark.slow
def test_a_file_that_breaks_while_training_fails_the_run_with_a_line(base_cache, file, tmp_path, case):
    body, message = FAULTS[case]
    path = file(f"def coefficients(batch, params):\n    {body}\n")
    ended = run(custom(path), tmp_path / "run")
    assert (ended.state, ended.exit_code) == ("failed", 1)
    assert message in ended.message
    assert "\n" not in ended.message
    assert json.loads((tmp_path / "run/status.json").read_text())["state"] == "failed"


@pytest.mark.slow
def test_coefficients_that_are_not_finite_collapse_the_run_at_their_update(base_cache, file, tmp_path):
    path = file("def coefficients(batch, params):\n    return batch.mask / (batch.delays < 3)[:, None, None]\n")
    ended = run(custom(path), tmp_path / "run")
    assert (ended.state, ended.exit_code) == ("collapsed", 0)
    assert ended.message.startswith("update 3, group ")
    assert ended.message.endswith(": a coefficient is not finite")
