"""Values as people write them, in yaml and by hand; every mistake is one line that names the key."""

import pytest

from delaysim.clock.lengths import Empirical, Lognormal
from delaysim.errors import UserError
from delaysim.predict.inputs import question, read_yaml

YAML = """
gpus: 16
B: 64
G: 8
lengths: {mean: 600, sigma: 0.5, cap: 4096}
speed: {64: 2200, 1: 60}
trainer: {8: 60, 4: 110}
sync: 2
price: 2.5
"""


def asked(tmp_path, text):
    path = tmp_path / "costs.yaml"
    path.write_text(text)
    return question(read_yaml(path), {})


def test_a_file_says_everything(tmp_path):
    found = asked(tmp_path, YAML)
    assert found.costs.work.samples == 512
    assert found.costs.work.lengths == Lognormal(600, 0.5, 0.5, 4096)
    assert found.costs.rollout.speed == ((1, 60), (64, 2200)), "rows are sorted"
    assert found.costs.rollout.slots == 64, "as many as the table reaches"
    assert (found.costs.trainer.seconds, found.costs.trainer.scaling) == (((4, 110), (8, 60)), 1)
    assert found.trainer_gpus == (2, 4, 6, 8, 10, 12, 14), "multiples of an eighth"
    assert (found.look_aheads, found.price, found.costs.sync) == ((4, 16), 2.5, 2)


def test_tables_and_lengths_may_be_files_beside_it(tmp_path):
    (tmp_path / "speed.csv").write_text("concurrency,tokens_per_s\n1,60\n64,2200\n")
    (tmp_path / "lengths.csv").write_text("tokens\n5\n7\n")
    text = YAML.replace("{64: 2200, 1: 60}", "speed.csv")
    text = text.replace("{mean: 600, sigma: 0.5, cap: 4096}", "{path: lengths.csv, column: tokens}")
    found = asked(tmp_path, text + "trainer_gpus: [4, 12]\neta: 8\nslots: 32\n")
    assert found.costs.rollout.speed == ((1, 60), (64, 2200))
    assert found.costs.rollout.slots == 32
    assert isinstance(found.costs.work.lengths, Empirical)
    assert found.costs.work.lengths.recorded.tolist() == [5, 7]
    assert (found.trainer_gpus, found.look_aheads) == ((4, 12), (8,))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("gpus: 16", "gpus: 2.5", "gpus=2.5: give a whole number from 1"),
        ("gpus: 16", "gpus: true", "gpus=True: give a number"),
        ("gpus: 16", "", "no gpus: give it in the yaml file or as --gpus 32"),
        ("gpus: 16", "gpus: 16\ngpu: 3", "no key 'gpu'; the keys are gpus, B"),
        ("gpus: 16", "gpus: 16\nunit: 16", "unit=16 leaves no split of gpus=16"),
        ("gpus: 16", "gpus: 16\ntrainer_gpus: [4, 16]", "trainer_gpus=16 leaves no GPU of gpus=16"),
        ("B: 64", "B: 0", "B=0: give a number from 1"),
        ("mean: 600", "mean: -600", "lengths.mean=-600: give a number from 1"),
        ("mean: 600, ", "", "lengths: no mean"),
        ("mean: 600", "men: 600", "lengths.men: no such key"),
        ("{mean: 600, sigma: 0.5, cap: 4096}", "{path: x.csv}", "needs both path=FILE and column=NAME"),
        ("{mean: 600, sigma: 0.5, cap: 4096}", "600", "lengths=600: give mean=600"),
        ("{64: 2200, 1: 60}", "{64: 2200, 1: fast}", "speed tokens/s='fast': give a number"),
        ("{64: 2200, 1: 60}", "{64: 2200, 1: .inf}", "speed tokens/s=inf: give a number"),
        ("{64: 2200, 1: 60}", "[64, 2200]", "give a table of responses at once and tokens/s"),
        ("{64: 2200, 1: 60}", "[[1, 60], [64, 9], [1, 61]]", "speed: 1 responses at once stands there twice"),
        ("{64: 2200, 1: 60}", "{}", "give a table of responses at once and tokens/s"),
        ("{8: 60, 4: 110}", "{8: 0}", "trainer seconds of an update: 0 is not above 0"),
        ("sync: 2", "sync: -1", "sync=-1: give a number from 0"),
        ("sync: 2", "sync: 1\nscaling: 1.5", "scaling=1.5: give a number from 0 to 1"),
        ("price: 2.5", "eta: [4, 0]", "eta=0: give a number from 1"),
        ("price: 2.5", "price: ${oc.env:HOME}", r"price='\$\{oc.env:HOME\}': give a number from 0"),
        ("sync: 2", "sync: !!python/object/apply:os.system ['true']", "not yaml: could not determine a constructor"),
        ("sync: 2", "sync: [", "not yaml"),
        (YAML, "- 3", "not KEY: VALUE lines"),
        (YAML, "3", "costs"),
    ],
)
def test_mistakes_are_one_line(tmp_path, old, new, message):
    with pytest.raises(UserError, match=message) as raised:
        asked(tmp_path, YAML.replace(old, new))
    assert "\n" not in str(raised.value)


def test_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "costs.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not a yaml file of costs"):
        read_yaml(path)
    with pytest.raises(UserError, match="cannot read"):
        read_yaml(tmp_path)
    with pytest.raises(UserError, match="cannot read"):
        read_yaml(tmp_path / "none.yaml")
