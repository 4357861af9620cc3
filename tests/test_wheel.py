"""The built wheel carries conf/ and works from any directory, in a virtual environment of its own."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A fresh environment with the wheel; it borrows the dependencies, not the checkout, from this one."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv/bin/python"
    (wheel,) = folder.glob("*.whl")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", str(wheel)], check=True)
    (site,) = (folder / "venv/lib").glob("python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "venv/bin"


@pytest.fixture
def crowded(tmp_path):
    """A directory whose own folders have the project's names."""
    for name in ("analysis", "conf", "delaysim_data"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the wrong folder was imported')")
    (tmp_path / "conf/config.yaml").write_text("nonsense: true\n")
    return tmp_path


@pytest.mark.parametrize("start", [["delaysim"], ["python", "-m", "delaysim"]], ids=" ".join)
def test_the_wheel_trains_and_traces_in_a_crowded_directory(installed, crowded, base_cache, start):
    command = [str(installed / start[0]), *start[1:]]
    where = subprocess.run(
        [installed / "python", "-c", "import delaysim; print(delaysim.__file__)"],
        cwd=crowded,
        capture_output=True,
        text=True,
    )
    assert str(installed.parent) in where.stdout
    fast = ["updates=2", "model.sft_steps=20", "evaluation.problems=4", "B=2", "G=2"]
    for words in (
        ["--help"],
        ["mode=trace", "+suite=simulated_async", "updates=20"],
        ["mode=plan", "-m", "+suite=fixed_delay", "D=0,1"],
        ["+suite=fixed_delay", "D=1", *fast],
    ):
        done = subprocess.run([*command, *words], cwd=crowded, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert len(list(crowded.glob("runs/fixed_delay/*/trace.parquet"))) == 1
    assert len(list(crowded.glob("runs/trace/*/trace.parquet"))) == 1


def test_the_wheel_grades_with_its_patches_and_its_workers(installed, crowded):
    rows = (
        '{"gold": "", "id": "gaokao/part1.en_zh.json#167", "prediction": "3/10"}',
        '{"gold": "2", "prediction": "4^{1/2}"}',
    )
    (crowded / "answers.jsonl").write_text("\n".join(rows))
    done = subprocess.run(
        [installed / "delaysim", "grade", "answers.jsonl", "--format", "json"],
        cwd=crowded,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout.count('"correct"')) == (0, 2), done.stderr
