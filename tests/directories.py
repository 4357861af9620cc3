"""Small pretrained models as directories: random weights, a character tokenizer."""

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from delaysim.settings.models import PretrainedModelConf

CHARACTERS = "abcdefghijklmnopqrstuvwxyz ?"
TEMPLATE = (
    "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
SIZES = {
    "vocab_size": 40,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "initializer_range": 0.3,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def build_tokenizer(chat_template=None, eos_token="</s>"):
    words = ["<pad>", "<s>", "</s>", "[user]", "[assistant]", *CHARACTERS]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=eos_token, extra_special_tokens=["</s>", "[user]", "[assistant]"]
    )
    fast.chat_template = chat_template
    return fast


def build_model(family="Qwen3", **settings):
    config = getattr(transformers, f"{family}Config")(**SIZES | settings)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return getattr(transformers, f"{family}ForCausalLM")(config)


def save(folder, model, tokenizer=None):
    model.save_pretrained(folder)
    (tokenizer or build_tokenizer()).save_pretrained(folder)
    return PretrainedModelConf(path=str(folder))
