"""Logs as the systems write them, by hand."""

import json


def write(path, *records):
    """JSON lines; what is text or bytes goes in as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        r if isinstance(r, bytes) else r.encode() if isinstance(r, str) else json.dumps(r).encode() for r in records
    ]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def session(task, number, submit=100.0, end=110.0, status="accepted", **more):
    """AReaL, SessionRecord.to_dict."""
    record = {
        "task_id": task, "session_id": number, "rank": 0, "status": status, "submit_ts": submit,
        "finalized_ts": end, "total_s": None if end is None else end - submit, "generate_s": 8.0, "reward_s": 0.5,
        "phases": {"generate": [{"start_ts": submit, "end_ts": end}]}, "counters": {"turns": 1},
    }  # fmt: skip
    return {key: value for key, value in {**record, **more}.items() if value is not None}


def trajectory(iteration, group, number, step, *lengths, split="train"):
    """tinker, serialize_rollout_summaries."""
    steps = [
        {
            "step_idx": i, "ob_len": 30, "ac_len": length, "reward": 0.0, "episode_done": i + 1 == len(lengths),
            "stop_reason": "stop", "metrics": {}, "logs": {},
        }
        for i, length in enumerate(lengths)
    ]  # fmt: skip
    return {
        "schema_version": 1, "split": split, "iteration": iteration, "group_idx": group, "traj_idx": number,
        "tags": ["math"], "sampling_client_step": step, "total_reward": 1.0, "final_reward": 1.0,
        "trajectory_metrics": {}, "steps": steps, "final_ob_len": 8,
    }  # fmt: skip


def episode(number, group, policy, *lengths, ok=True, work="train", start=50.0, end=60.0, trainable=True):
    """prime-rl, a verifiers Episode.to_record with one trace, one call a length."""
    calls = [{"node": i, "usage": {"prompt_tokens": 20, "completion_tokens": n}} for i, n in enumerate(lengths)]
    trace = {
        "version": 1, "id": f"trace-{number}", "agent": {"config": {}, "name": "agent", "trainable": trainable},
        "calls": calls, "ok": ok,
        "timing": {"start": start, "agent": {"start": start, "end": end}, "scoring": {"start": end, "end": end + 1}},
    }  # fmt: skip
    span = {} if policy is None else {"policy": {"start": policy[0], "end": policy[1]}}
    return {
        "id": f"episode-{number}", "env": {"id": "gsm8k", "name": "gsm8k"}, "task": {"type": "Task", "data": {}},
        "group": {"id": group}, "run": {"type": "train", "id": "run", "work": {"type": work, "step": 1, **span}},
        "ok": ok, "errors": [], "traces": [trace],
    }  # fmt: skip


def exported(step, number, trained, prompt=3, **more):
    """prime-rl, TokenExporter._write with the columns that are read."""
    return {
        "schema_version": 1, "step": step, "rank": 0, "micro_step": 0, "micro_sequence_idx": number,
        "export_sequence_idx": number, "env_name": "gsm8k", "token_ids": [5] * (prompt + trained),
        "loss_mask": [False] * prompt + [True] * trained, "importance_ratio": [1.0] * (prompt + trained), **more,
    }  # fmt: skip


def output(index, spans, finish="stop", **more):
    """vLLM, a CompletionOutput; spans as (label, tokens)."""
    ends = [sum(count for _, count in spans[: i + 1]) for i in range(len(spans))]
    versions = [
        {"version": label, "start": end - count, "end": end} for (label, count), end in zip(spans, ends, strict=True)
    ]
    return {
        "index": index, "text": "", "token_ids": [7] * (ends[-1] if ends else 0), "cumulative_logprob": -1.0,
        "finish_reason": finish, "weight_versions": versions or None, **more,
    }  # fmt: skip


def read(name, *places, columns=None):
    """The ledger of files or directories, and the tally."""
    from delaysim.importing.formats import discover
    from delaysim.importing.ledger import Ledger
    from delaysim.importing.lines import Tally
    from delaysim.importing.sources import files

    form, tally = discover()[name], Tally()
    more = [columns or {}] if name == "csv" else []
    return Ledger.of(form.read(files([str(place) for place in places], form), tally, *more)), tally


def table(ledger, *columns):
    """Rows of some columns, None for what is not known."""
    cells = [ledger.texts[key] if key in ledger.texts else ledger[key].tolist() for key in columns]
    return [tuple(None if value != value else value for value in row) for row in zip(*cells, strict=True)]


def reasons(tally):
    """Skipped lines by reason, with the number of the first."""
    return {reason: (count, first.number) for reason, (count, first) in tally.reasons.items()}
