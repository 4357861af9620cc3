"""ratios.bin: frames whole or left out, bits as the learner saw them, the same bytes whatever interrupts the run."""

import os
import signal
from dataclasses import fields

import numpy as np
import pytest
import torch
from settings import fingerprint, rows, run, small_config
from stopping import finished, stopped_and_resumed

from delaysim.errors import UserError
from delaysim.ratios import HEADER, Recorded, frame, read_frames
from delaysim.run.records import RunDir
from delaysim.train.learner import Learner

CHOSEN = ("D=3", "updates=6", "lr=3e-3", "evaluation.every=null")
SHORT = (*CHOSEN, "updates=3")


def mini_batch(seed, proximal=False):
    """A made mini-batch of odd shape, with numbers that rounding or another byte order would change."""
    rng = np.random.default_rng(seed)
    b, g = int(rng.integers(1, 4)), int(rng.integers(2, 5))
    lengths = rng.integers(1, 9, (b, g))
    n = int(lengths.sum())
    logp = -rng.exponential(3, n).astype(np.float32)
    logp[0] = np.float32(-1e-42)
    return Recorded(
        update=int(rng.integers(0, 2**40)),
        logp=logp,
        behaviour=-rng.exponential(3, n).astype(np.float32),
        lengths=lengths.astype(np.int32),
        rewards=rng.standard_normal((b, g)),
        advantages=rng.standard_normal((b, g)) / 3,
        delays=rng.integers(0, 2**40, b),
        groups=rng.integers(0, 2**40, b),
        proximal=-rng.exponential(3, n).astype(np.float32) if proximal else None,
    )


def same(one, other):
    """Every field bit for bit and of the same kind."""
    for field in fields(Recorded):
        a, b = getattr(one, field.name), getattr(other, field.name)
        assert type(a) is type(b), field.name
        if isinstance(a, np.ndarray):
            assert (a.dtype, a.shape) == (b.dtype, b.shape), field.name
            assert a.tobytes() == b.tobytes(), field.name
        else:
            assert a == b, field.name


@pytest.mark.parametrize("proximal", [False, True])
def test_frames_come_back_bit_for_bit_and_in_order(tmp_path, proximal):
    made = [mini_batch(seed, proximal) for seed in range(12)]
    (tmp_path / "ratios.bin").write_bytes(b"".join(map(frame, made)))
    found = list(read_frames(tmp_path / "ratios.bin"))
    assert len(found) == 12
    for one, other in zip(found, made, strict=True):
        same(one, other)


def test_frames_of_both_kinds_may_follow_each_other(tmp_path):
    made = [mini_batch(0, True), mini_batch(1, False), mini_batch(2, True)]
    (tmp_path / "ratios.bin").write_bytes(b"".join(map(frame, made)))
    for one, other in zip(read_frames(tmp_path / "ratios.bin"), made, strict=True):
        same(one, other)


def test_a_frame_is_a_length_and_a_safetensors_block():
    """So that it can be read without this package."""
    from safetensors.numpy import load

    made = mini_batch(3)
    data = frame(made)
    size = int.from_bytes(data[:8], "little")
    assert len(data) == 8 + size
    arrays = load(data[8:])
    assert arrays["logp"].tobytes() == made.logp.tobytes()
    assert arrays["update"].tolist() == [made.update]
    assert "proximal" not in arrays


@pytest.mark.parametrize("left", [1, 7, 8, 9, 100, -1])
def test_a_torn_last_frame_is_left_out(tmp_path, left):
    """Cut within the length, right behind it, within the block, one byte before the end."""
    made = [mini_batch(seed) for seed in range(3)]
    whole, last = b"".join(map(frame, made[:2])), frame(made[2])
    (tmp_path / "ratios.bin").write_bytes(whole + last[:left])
    found = list(read_frames(tmp_path / "ratios.bin"))
    assert [f.update for f in found] == [m.update for m in made[:2]]
    for one, other in zip(found, made[:2], strict=True):
        same(one, other)


def test_an_empty_file_has_no_frames(tmp_path):
    (tmp_path / "ratios.bin").write_bytes(b"")
    assert list(read_frames(tmp_path / "ratios.bin")) == []


def of_length(block, size=None):
    return HEADER.pack(len(block) if size is None else size) + block


@pytest.mark.parametrize(
    "data",
    [of_length(b"not safetensors"), of_length(b"", 0), of_length(b"x" * 20, -1), of_length(b"{}" * 8)],
    ids=["garbage", "length 0", "negative length", "braces"],
)
def test_another_format_is_refused_and_named(tmp_path, data):
    path = tmp_path / "ratios.bin"
    path.write_bytes(data)
    with pytest.raises(UserError) as error:
        list(read_frames(path))
    assert str(error.value).startswith(f"{path} is not a record of ratios: ")


def test_a_safetensors_file_and_blocks_of_other_tensors_are_refused(tmp_path):
    from safetensors.numpy import save, save_file

    path = tmp_path / "other.safetensors"
    save_file({"weight": np.ones(3)}, path)
    with pytest.raises(UserError, match="is not a record of ratios"):
        list(read_frames(path))
    whole = {"update": np.array([3]), "logp": np.ones(2)}
    for arrays in ({"weight": np.ones(3)}, whole, {**whole, "behaviour": np.ones(2), "more": np.ones(2)}):
        path.write_bytes(of_length(save(arrays)))
        with pytest.raises(UserError, match="is not a record of ratios"):
            list(read_frames(path))


# what a run records


@pytest.fixture
def seen(monkeypatch):
    """Every update's outcome and groups, as the learner gave them."""
    update, found = Learner.update, []

    def watched(self, number, groups):
        outcome = update(self, number, groups)
        found.append((number, outcome, list(groups)))
        return outcome

    monkeypatch.setattr(Learner, "update", watched)
    return found


def tokens(values, mask):
    """The token values of each response in turn, as the model's float32."""
    return np.concatenate([row[present > 0].float().numpy() for row, present in zip(values, mask, strict=True)])


@pytest.mark.parametrize("more", [(), ("estimator=decoupled", "learner.updates_per_batch=2"), ("rule=vcpo",)])
@pytest.mark.slow
def test_recorded_is_exactly_what_the_learner_saw(base_cache, tmp_path, seen, more):
    run(small_config(*CHOSEN, *more), tmp_path / "run")
    found = list(read_frames(tmp_path / "run/ratios.bin"))
    assert [f.update for f in found] == [number for number, *_ in seen] == list(range(6))
    for one, (_, outcome, groups) in zip(found, seen, strict=True):
        batch, mask = outcome.batch, outcome.batch.mask.flatten(0, 1)
        for name in ("logp", "behaviour", *(["proximal"] if batch.proximal is not None else [])):
            values = getattr(batch, name).flatten(0, 1)
            assert torch.equal(values, values.float().double()), "float32 holds them"
            assert getattr(one, name).tobytes() == tokens(values, mask).tobytes(), name
        assert (one.proximal is None) == (batch.proximal is None) == ("estimator=decoupled" not in more)
        assert one.lengths.tolist() == [group.lengths for group in groups]
        assert one.rewards.tolist() == [list(group.rewards) for group in groups]
        assert one.advantages.tolist() == batch.advantages.tolist()
        assert one.delays.tolist() == [one.update - group.version for group in groups]
        assert one.groups.tolist() == [group.group for group in groups]


def test_behaviour_is_what_was_sampled_with_and_at_delay_0_what_is_trained_on(base_cache, tmp_path, seen):
    run(small_config(*CHOSEN), tmp_path / "run")
    first, *later = read_frames(tmp_path / "run/ratios.bin")
    assert first.behaviour.tobytes() == first.logp.tobytes()
    for one, (_, _, groups) in zip(later, seen[1:], strict=True):
        sampled = np.concatenate([response.logp for group in groups for response in group.responses])
        assert one.behaviour.tobytes() == sampled.tobytes()
        assert one.logp.tobytes() != one.behaviour.tobytes()


def recorded_updates(path, *overrides):
    run(small_config(*overrides), path)
    assert len(rows(path, "updates")) == small_config(*overrides).updates
    return [f.update for f in read_frames(path / "ratios.bin")]


def test_none_writes_nothing_and_changes_no_row(base_cache, tmp_path):
    assert recorded_updates(tmp_path / "none", *SHORT, "record.ratios=none") == []
    assert (tmp_path / "none/ratios.bin").stat().st_size == 0
    assert recorded_updates(tmp_path / "all", *SHORT) == [0, 1, 2]
    one, other = (fingerprint(tmp_path / name) for name in ("none", "all"))
    assert {name for name in one if one[name] != other[name]} == {"ratios.bin"}


def test_sample_keeps_every_tenth_update(base_cache, tmp_path):
    chosen = ("updates=12", "B=1", "sampler.max_new_tokens=16", "evaluation.every=null")
    assert recorded_updates(tmp_path / "run", *chosen, "record.ratios=sample") == [0, 10]


# interruptions


@pytest.fixture(scope="module")
def whole(base_cache, tmp_path_factory):
    return finished(CHOSEN, tmp_path_factory.mktemp("whole") / "run")


@pytest.mark.slow
def test_a_stopped_run_has_the_same_bytes_in_the_end(whole, tmp_path, monkeypatch):
    assert stopped_and_resumed(CHOSEN, tmp_path / "run", monkeypatch) == whole
    assert len(whole["ratios.bin"]) > 6 * 500


def tear_frame(count, share, path):
    """Be killed when a part of the `count`-th frame has reached the file."""
    append, calls = RunDir.append_bytes, [0]

    def torn(self, name, data):
        calls[0] += 1
        if calls[0] == count:
            self._file(name).write(data[: max(1, int(share * len(data)))])
            self._file(name).flush()
            os.kill(os.getpid(), signal.SIGKILL)
        append(self, name, data)

    RunDir.append_bytes = torn
    run(small_config(*CHOSEN), path)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "share"), [(1, 0.5), (3, 0.001), (4, 0.5), (6, 0.999)])
def test_killed_in_the_middle_of_a_frame(whole, context, tmp_path, count, share):
    path = tmp_path / "run"
    process = context.Process(target=tear_frame, args=(count, share, path))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL, "the run ended before the place was reached"
    left = (path / "ratios.bin").read_bytes()
    assert whole["ratios.bin"].startswith(left)
    assert [f.update for f in read_frames(path / "ratios.bin")] == list(range(count - 1)), "readable as it lies"
    assert run(small_config(*CHOSEN), path).state == "done"
    assert fingerprint(path) == whole
