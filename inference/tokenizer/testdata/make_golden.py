"""Makes the golden files of package tokenizer with independent implementations.

    pip install tokenizers sentencepiece protobuf regex gguf
    python make_golden.py [MODEL.gguf]

writes beside this file
    splits.json.gz   pre-tokenization by Hugging Face's tokenizers (kimi-k2: by regex), as byte lengths
    bpe.json         a small byte-level BPE vocabulary trained here, and ids by tokenizers
    spm.json         a small SentencePiece vocabulary trained here, and ids by sentencepiece
    smollm2.json     ids by tokenizers with the vocabulary of MODEL.gguf, SmolLM2-135M-Instruct
"""
import gzip
import io
import json
import pathlib
import random
import sys

import regex
import sentencepiece
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers
from tokenizers.pre_tokenizers import ByteLevel, Digits, Punctuation, Sequence, Split

HERE = pathlib.Path(__file__).parent

CORPUS = [
    "", " ", "  ", "\n", "\t", " \n", "\r\n\r\n", "\u00a0", "\u3000 \u2003x",
    "Hello, world!", "Hello   world", " leading and trailing ", "I'm sure you'll SEE they'Re WE'D don't o'clock 'S ''s",
    "The price is $1,234.56 (or 12345678 in 2024); 3.14159e-10 and 1/2, ½, ², Ⅷ, ১২৩, १२३४५६.",
    "नमस्ते दुनिया, यह एक परीक्षण है। क़लम ज़रूर पढ़ाई श्रीमान् क्षत्रिय",
    "Selamat pagi, apa kabar? Anak-anak sedang bermain-main di taman; harganya Rp25.000,00.",
    "안녕하세요, 세계! 한국어 토큰화를 시험합니다. ㅋㅋㅋ 가나다",
    "你好,世界!这是一个测试。标点:“引号”、《书名》……〇々", "日本語のテスト。カタカナとひらがな、ｈａｌｆ－ｗｉｄｔｈ ﾊﾝｶｸ",
    "مرحبا بالعالم! هذا اختبارٌ لِلتَّشكيل ١٢٣", "שלום עולם, שָׁלוֹם", "สวัสดีชาวโลก ภาษาไทยไม่มีวรรค", "Привет, мир! ЁЖИК съел ЙОД",
    "Ελληνικά ΆΈΉ, Türkçe İıŞş, Việt ngữ tiếng, naïve café, ǅ ǈ, Straße, ﬁ ſ K Å",
    "👋🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇮🇩🇮🇳 ❤️ ☕️ 1️⃣ 🤷🏾‍♂️!!!", "e\u0301 vs é, a\u0308\u0301, \u0301x, \u200b\u200d\ufeff zero\u00adwidth",
    "def f(x):\n    return {'a': x[0], \"b\": x**2}  # comment\n\n\nclass A:\n\tpass\n",
    "for (int i = 0; i < n; ++i) { a[i] += b->c[i] && !d; }\r\n\r\n  // done\n", "SELECT * FROM t WHERE x <> 'y' AND z >= 10; -- ok",
    "https://example.com/a_b/c-d?e=f&g=%20#h user@host.org C:\\path\\file.txt /usr/local/bin", "CamelCaseWordsAndHTMLParserX2 snake_case_word SCREAMING_CASE iPhone",
    "|---|---|\n| a | b |\n\n* item\n  1. sub\n~~~\n```go\nx := 1\n```", "a\n b\n  c\n   d\n\te\n \n  \n x", "x  \n\n\n   y   \t  z\n   ",
    "....!!!!????----====    ____", "<|im_start|>user\nHi<|im_end|>\n<|endoftext|></s><s>[INST]<think>", "\u0000\u0001\u001f\u007f\u0085\u2028\u2029x",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐐀𐐨 𠀀𠀁 🀄 𞤀𞤢 ꧁꧂ ༼ つ ◕_◕ ༽つ ¯\\_(ツ)_/¯", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "ab" * 40, " " * 70 + "x" + "\n" * 33,
    "ÀÀÀ中ÀÀÀ aÀ中b ǅa aǅ 中A中a A'sB 'sS中'll", "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore.",
]

ALPHABET = list("aZzA éÀßſK'stmdrevl  \n\r\t.,!?-/_$+<=>~`|^01239½²४१中々〇가あカْ") + [
    "\u0301", "\u093f", "न", "ǅ", "ʰ", "ا", "ั", "\u200d", "\ufe0f", "👩", "🇮", "𐐀", "𐐨", "𠀀", "\u00a0", "\u3000", "\u2028", "\u0085", "…", "“", "。", "！", "\u0000",
    "'s", "'LL", "'ſ", " \n", "\n\n", "  ", "123", "abc", "ABC",
]


def random_texts(n):
    rng = random.Random(20260309)
    return ["".join(rng.choice(ALPHABET) for _ in range(rng.randrange(1, 40))) for _ in range(n)]


def split(*patterns):
    return Sequence([Split(Regex(p), "isolated") for p in patterns])


CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = CONTRACTION + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + CONTRACTION +
    r"?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + CONTRACTION +
    r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
KIMI = (
    r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+" + CONTRACTION +
    r"?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*" + CONTRACTION +
    r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK3 = (
    r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)
DEEPSEEK_CODER = (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥\u0800-一가-\ud7ff]+", r"\p{N}")
GPT2 = ByteLevel(add_prefix_space=False, use_regex=True)

PRE = {
    "gpt-2": GPT2,
    "smollm": Sequence([Digits(individual_digits=True), GPT2]),
    "llama-bpe": split(LLAMA3), "qwen2": split(QWEN2), "qwen35": split(QWEN35), "tekken": split(TEKKEN), "gpt-4o": split(GPT4O),
    "deepseek-v3": split(*DEEPSEEK3), "deepseek-coder": split(*DEEPSEEK_CODER),
}


def lengths(text, cut):
    return [len(text[a:b].encode()) for a, b in cut]


def byte_offsets(text, pre):
    """Offsets of tokenizers are in characters; a byte-level step may cut none."""
    return [o for _, o in pre.pre_tokenize_str(text)]


def splits():
    texts = CORPUS + random_texts(400)
    out = {"texts": texts, "splits": {}}
    for name, pre in PRE.items():
        out["splits"][name] = [lengths(t, byte_offsets(t, pre)) for t in texts]
    kimi = regex.compile(KIMI, regex.V1)
    # regex folds ſ with s under (?i) as the others do; matches cover all text, gaps included.
    rows = []
    for t in texts:
        cut, at = [], 0
        for m in kimi.finditer(t):
            if m.start() > at:
                cut.append((at, m.start()))
            if m.end() > m.start():
                cut.append(m.span())
            at = m.end()
        if at < len(t):
            cut.append((at, len(t)))
        rows.append(lengths(t, cut))
    out["splits"]["kimi-k2"] = rows
    write_gzip("splits.json.gz", out)


def write_gzip(name, value):
    buf = io.BytesIO()
    with gzip.GzipFile(fileobj=buf, mode="wb", mtime=0) as f:
        f.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    (HERE / name).write_bytes(buf.getvalue())


def write(name, value):
    (HERE / name).write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


def bpe():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = Sequence([Split(Regex(LLAMA3), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)])
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=ByteLevel.alphabet(), show_progress=False)
    t.train_from_iterator(CORPUS * 3, trainer)
    model = json.loads(t.to_str())["model"]
    tokens = [k for k, _ in sorted(model["vocab"].items(), key=lambda kv: kv[1])]
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    texts = CORPUS + random_texts(100)
    write("bpe.json", {"tokens": tokens, "merges": merges, "texts": texts, "ids": [t.encode(x).ids for x in texts]})


def spm():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([c for c in CORPUS if "\0" not in c] * 3), model_writer=model, vocab_size=900, model_type="bpe",
        byte_fallback=True, character_coverage=0.98, add_dummy_prefix=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False, allow_whitespace_only_pieces=True, minloglevel=2)
    p = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    kinds = []
    for i in range(len(p)):
        kinds.append(2 if p.is_unknown(i) else 3 if p.is_control(i) else 6 if p.is_byte(i) else 5 if p.is_unused(i) else 1)
    texts = [t for t in CORPUS + random_texts(100) if "\0" not in t]
    write("spm.json", {
        "tokens": [p.id_to_piece(i) for i in range(len(p))], "scores": [p.get_score(i) for i in range(len(p))], "types": kinds,
        "texts": texts, "ids": [p.encode(x) for x in texts]})


def smollm2(path):
    from gguf import GGUFReader

    fields = GGUFReader(path).fields

    def strings(key):
        f = fields[key]
        return [bytes(f.parts[i]).decode() for i in f.data]

    tokens, merges = strings("tokenizer.ggml.tokens"), [tuple(m.split(" ")) for m in strings("tokenizer.ggml.merges")]
    t = Tokenizer(models.BPE(vocab={k: i for i, k in enumerate(tokens)}, merges=merges))
    t.pre_tokenizer = PRE["smollm"]
    write("smollm2.json", {"texts": CORPUS, "ids": [t.encode(x).ids for x in CORPUS]})


if __name__ == "__main__":
    splits()
    bpe()
    spm()
    if len(sys.argv) > 1:
        smollm2(sys.argv[1])
