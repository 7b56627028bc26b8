#!/usr/bin/env python3
"""Make the fixtures of the encoding tests with the Hugging Face tokenizers library.

  gen_ids.py OUT [COUNT]            needs: pip install tokenizers regex
  gen_ids.py OUT COUNT MODEL.gguf   also needs gguf: rows for the vocabulary of that file, to OUT/gguf.jsonl

The first form trains a small vocabulary and writes OUT/vocab.json (tokens, types, merges), OUT/texts.jsonl and, for each
rule, OUT/RULE.txt: the ids of each text, special tokens parsed and none added.
"""
import importlib.util, json, os, random, sys
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, trainers, pre_tokenizers as P

HERE = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("gen_pieces", os.path.join(HERE, "gen_pieces.py"))
gp = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gp)

RULES = {  # name: (normal form C, a whole piece wins over merges)
    "gpt-2": (False, False), "smollm": (False, False), "qwen2": (True, False), "qwen35": (True, False),
    "llama-bpe": (False, True), "tekken": (False, True), "deepseek-v3": (False, False)}
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|end", "<s>"]
USER = ["<think>", "</think>", "<tool", "<tool_call>", "    ", "ǅ"]
WHOLE = ["Ġlazy", "getElementById", "!!!", "Ġnaïve".replace("ï", "Ã¯"), "Ġbarometers", "1987"]
PROSE = """The harbour lay quiet under a low grey sky, and the fishermen, who had been out since before dawn, were mending their nets along the
quay. "You'll not see a better catch this year," said old Matthews; he didn't look up. In 1987 the cannery had employed 412 people. Größe und
Maß, ein Übermaß an Straßen. Il était une fois à l'été une élève très naïve. Привет, мир! Как дела? 日本語のテキストを分割する。漢字とカタカナ。
مرحبا بالعالم नमस्ते दुनिया. for (int i = 0; i < n; i++) { sum += a[i] * b[i]; } return nil, fmt.Errorf("bad: %d", n)"""


def build(vocab, merges, name, specials, users):
    nfc, whole = RULES[name]
    t = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=whole))
    if nfc: t.normalizer = normalizers.NFC()
    if name == "gpt-2": pre = [P.ByteLevel(add_prefix_space=False, use_regex=True)]
    elif name == "smollm": pre = [P.Digits(individual_digits=True), P.ByteLevel(add_prefix_space=False, use_regex=True)]
    else: pre = [P.Split(Regex(p), "isolated") for p in gp.PATTERNS[name]] + [P.ByteLevel(add_prefix_space=False, use_regex=False)]
    t.pre_tokenizer = P.Sequence(pre)
    t.add_special_tokens([AddedToken(s, normalized=False, special=True) for s in specials])
    t.add_tokens([AddedToken(s, normalized=False) for s in users])
    return t


def text(r):
    s = ""
    for _ in range(r.randint(1, 4)):
        s += r.choice([gp.text(r), r.choice(CONTROL + USER), " ".join(r.sample(PROSE.split(), r.randint(1, 8))),
                       r.choice(["lazy", " lazy", "!!!", "getElementById", " barometers 1987", "<|end<|endoftext|>", "<tool_cal", "     x",
                                 "<<think>>", "e\u0301te\u0301", "A\u030a", "\u1100\u1161\u11a8", "a\u0323\u0302", "\u212b\u2126"])])
    return s


def small(out, count):
    base = models.BPE()
    t = Tokenizer(base)
    t.pre_tokenizer = P.ByteLevel(add_prefix_space=False, use_regex=True)
    r = random.Random(11)
    corpus = PROSE.split("\n") * 20 + [gp.text(r) for _ in range(400)]
    t.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=1000, initial_alphabet=sorted(P.ByteLevel.alphabet()), show_progress=False))
    m = json.loads(t.to_str())["model"]
    merges = [tuple(x) if isinstance(x, list) else tuple(x.split(" ")) for x in m["merges"]]
    vocab = m["vocab"]
    for w in WHOLE: vocab.setdefault(w, len(vocab))
    first = len(vocab)
    tokens = [k for k, _ in sorted(vocab.items(), key=lambda kv: kv[1])] + CONTROL + USER
    types = [1] * first + [3] * len(CONTROL) + [4] * len(USER)
    os.makedirs(out, exist_ok=True)
    json.dump({"tokens": tokens, "types": types, "merges": [" ".join(x) for x in merges]}, open(os.path.join(out, "vocab.json"), "w"),
              ensure_ascii=False, separators=(",", ":"))
    r = random.Random(5)
    texts = [text(r) for _ in range(count)]
    with open(os.path.join(out, "texts.jsonl"), "w") as f:
        for s in texts: f.write(json.dumps(s) + "\n")
    for name in RULES:
        t = build(vocab, merges, name, CONTROL, USER)
        with open(os.path.join(out, name + ".txt"), "w") as f:
            for s in texts: f.write(" ".join(map(str, t.encode(s, add_special_tokens=False).ids)) + "\n")


def from_gguf(out, count, path):
    from gguf import GGUFReader
    f = GGUFReader(path).fields
    get = lambda k: f["tokenizer.ggml." + k].contents()
    tokens, types, merges = get("tokens"), get("token_type"), [tuple(m.split(" ")) for m in get("merges")]
    t = build({s: i for i, s in enumerate(tokens)}, merges, get("pre"), [s for s, y in zip(tokens, types) if y == 3],
              [s for s, y in zip(tokens, types) if y == 4])
    r = random.Random(5)
    with open(os.path.join(out, "gguf.jsonl"), "w") as w:
        for _ in range(count):
            s = text(r)
            w.write(json.dumps({"text": s, "ids": t.encode(s, add_special_tokens=False).ids}) + "\n")


if len(sys.argv) > 3: from_gguf(sys.argv[1], int(sys.argv[2]), sys.argv[3])
else: small(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 60)
