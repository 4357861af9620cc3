"""Columns of append-only tables, against Python's own reading of every line."""

import json

import numpy as np
import pandas as pd
import pytest

from delaysim.analysis.rowfiles import read_columns

ROWS = {
    "alike": [{"a": 1, "b": "x", "c": True, "d": 0.5, "e": [1, 2]}, {"a": 2, "b": "y", "c": False, "d": 1.5, "e": [3]}],
    "whole then not": [{"a": 1, "b": "x", "c": True, "d": 1}, {"a": 2.5, "b": "y", "c": False, "d": 2}],
    "null first": [{"a": None, "b": None, "c": None, "d": None}, {"a": 2, "b": "y", "c": True, "d": 0.5}],
    "null later": [{"a": 1, "b": "x", "c": True, "d": 0.5}, {"a": 2, "b": None, "c": True, "d": None}],
    "missing first": [{"b": "x", "c": True, "d": 0.5}, {"a": 2, "b": "y", "c": True, "d": 0.5}],
    "missing later": [{"a": 1, "b": "x", "c": True, "d": 0.5}, {"a": 2, "c": True}],
    "missing everywhere": [{"b": "x"}, {"b": "y"}],
    "other columns of any kind": [{"a": 1, "b": "", "c": True, "d": 0.1, "z": {"k": [None]}}],
    "strange names": [{"a": -1, "b": '<b>\u202e\\n"', "c": False, "d": 1e-300}],
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("torn", ["", '{"a": 7, "b'])
def test_columns_are_those_of_the_lines(tmp_path, rows, torn):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows) + torn)
    frame = read_columns(file, ("d", "a", "b", "c"))
    assert list(frame.columns) == ["d", "a", "b", "c"]
    for name in frame:
        for got, row in zip(frame[name], rows, strict=True):
            wanted = row.get(name)
            assert pd.isna(got) if wanted is None else got == wanted


def test_lists_are_read(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS["alike"]))
    assert [np.asarray(value).tolist() for value in read_columns(file, ("e",))["e"]] == [[1, 2], [3]]


@pytest.mark.parametrize("text", [None, "", '{"a": 1'])
def test_a_file_without_a_whole_line_has_no_rows(tmp_path, text):
    file = tmp_path / "rows.jsonl"
    if text is not None:
        file.write_text(text)
    frame = read_columns(file, ("a", "b"))
    assert (list(frame.columns), len(frame)) == (["a", "b"], 0)
