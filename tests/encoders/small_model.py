"""A sentence-transformers folder of a few megabytes with random weights: another kind of model than the default."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any


def write_small_model(folder: Path) -> Path:
    """One BERT layer of width 768, pooling by the first token, 32 tokens, prompts, and a tokenizer of letters."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel

    letters = string.ascii_lowercase + string.digits + ":.,?"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{letter}" for letter in letters)]
    vocab = {word: number for number, word in enumerate(words)}
    tokenizer: Any = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", vocab["[SEP]"]), ("[CLS]", vocab["[CLS]"]))
    tokenizer.enable_truncation(8)  # as in published files: a limit that must not cut texts off

    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=len(words), num_hidden_layers=1, intermediate_size=64, max_position_embeddings=64, pad_token_id=0
    )
    folder.mkdir(parents=True)
    BertModel(config).eval().save_pretrained(folder, safe_serialization=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "1_Pooling").mkdir()
    prompts = {"prompts": {"query": "ask: ", "document": "text: "}}
    kinds = [("0", "", "Transformer"), ("1", "1_Pooling", "Pooling")]
    files: dict[str, object] = {
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]"},
        "sentence_bert_config.json": {"max_seq_length": 32, "do_lower_case": False},
        "config_sentence_transformers.json": prompts,
        "1_Pooling/config.json": {"word_embedding_dimension": 768, "pooling_mode_cls_token": True},
        "modules.json": [
            {"idx": number, "name": name, "path": path, "type": f"sentence_transformers.models.{kind}"}
            for number, (name, path, kind) in enumerate(kinds)
        ],
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value), "utf-8")
    return folder
