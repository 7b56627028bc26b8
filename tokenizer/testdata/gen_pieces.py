#!/usr/bin/env python3
"""Make the fixtures of the pre-tokenizer tests.

  gen_pieces.py OUT [COUNT]     needs: pip install tokenizers regex

Writes OUT/texts.jsonl (one JSON string a line) and, for each pattern, OUT/NAME.txt: for each text the lengths in bytes
of its pieces. The pieces come from the published patterns, run by the Hugging Face tokenizers library; where a
pattern is in a syntax that Python's regex also has, both must agree, or the text is dropped and counted.
"""
import json, os, random, sys
import regex
from tokenizers import Regex, pre_tokenizers as P

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+%s"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*%s")
PUNCT = r" ?[^\s\p{L}\p{N}]+"
CASED = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "cased.txt"), encoding="utf-8").read().strip()

# name -> the patterns, each applied to the pieces of the one before ("isolated", or as the pair says)
PATTERNS = {
    "gpt-2": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "qwen2": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + PUNCT + r"[\r\n]*|" + SPACES],
    "qwen35": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + SPACES],
    "llama-bpe": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + PUNCT + r"[\r\n]*|" + SPACES],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"],
    "seed-coder": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|" + SPACES],
    "minicpm5": [r"\p{N}{1,3}", CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+|" + PUNCT + r"[\r\n]*|" + SPACES],
    "jais-2": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + PUNCT + r"[\r\n]*|\s*[\r\n]+|"
               + "|".join(r"\s{%d}(?!\S)" % n for n in (512, 256, 128, 64, 32, 16, 8, 4)) + r"|\s{1,2}(?!\S)|\s{1}"],
    "gpt-4o": [O200K % (CONTRACTIONS + "?", CONTRACTIONS + "?") + r"|\p{N}{1,3}|" + PUNCT + r"[\r\n/]*|" + SPACES],
    "tekken": [O200K % ("", "") + r"|\p{N}|" + PUNCT + r"[\r\n/]*|" + SPACES],
    "kimi-k2": [r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
                + CONTRACTIONS + r"?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
                r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*" + CONTRACTIONS + r"?|\p{N}{1,3}|" + PUNCT + r"[\r\n]*|" + SPACES],
    "exaone-moe": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}|" + PUNCT
                   + r"[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"],
    "youtu": ["[가-힣\u3131-\u318e]+|[！…“”‘’—：；，、-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+|[一-龥\u3040-ゟ゠-ヿ]+",
              O200K % (CONTRACTIONS + "?", CONTRACTIONS + "?") + r"|\p{N}|" + PUNCT + r"[\r\n/]*|" + SPACES],
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*\b)",
                 O200K % (CONTRACTIONS + "?", CONTRACTIONS + "?") + r"|\p{N}{1,3}|" + PUNCT + r"[\r\n/]*|" + SPACES],
    "longcat": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + PUNCT + r"[\r\n]*|" + SPACES,
                " ?[！-／：-～‘-‟\u3000-。《》「」【】]+", "[一-龥\u0800-一가-\ud7ff]+"],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "deepseek-v3": [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
                    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
                    + SPACES],
    "laguna": [(r"(?:\r?\n)+(?!\r?\n)", "merged_with_next"),
               CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + PUNCT + r"[\r\n]*|" + SPACES],
    "spark2_5": [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
                 r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|"
                 r"\s+(?!\S)|\s+", r"\p{N}"],
    "ufakzeka": [r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + PUNCT + r"[\r\n]*|" + SPACES],
    "k2-horizon": [CONTRACTIONS + "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}|\\p{M}|\u200c|\u200d)+|" + r"\p{N}{1,3}|" + PUNCT + r"[\r\n]*|" + SPACES],
    "deepseek-llm": [r"[\r\n]", r"\s?[" + CASED + "]+", "\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+", r"\s+$", "[一-龥\u0800-一가-\ud7ff]+",
                     r"\p{N}+"],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥\u0800-一가-\ud7ff]+", r"\p{N}"],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, r"[0-9][0-9][0-9]"],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"],
    "bloom": [" ?[^(\\s|.,!?…。，、।۔،)]+"],
    "viking": [" ?[^(\\s|.,!?…。，、।۔،)]+", r"\p{N}"],
}
# Set intersection is V1 syntax in Python, and possessive quantifiers match alike; $ must not match before a last \n.
PYTHON = {"kimi-k2": regex.V1}
ALONE = {"tiny_aya"}  # Python has another \w


def behavior(p):
    return p if isinstance(p, tuple) else (p, "isolated")


def hugging_face(patterns):
    stages = [P.Split(Regex(p), how) for p, how in map(behavior, patterns)]
    pre = P.Sequence(stages + [P.ByteLevel(add_prefix_space=False, use_regex=False)])
    return lambda s: [len(p) for p, _ in pre.pre_tokenize_str(s)]


def python(patterns, flags):
    compiled = [(regex.compile(p.replace(r"\s+$", r"\s+\Z"), flags), how) for p, how in map(behavior, patterns)]

    def split(s):
        pieces = [s]
        for rx, how in compiled:
            out = []
            for piece in pieces:
                at = 0
                if how == "merged_with_next":
                    cuts = [0] + [m.start() for m in rx.finditer(piece) if m.start()] + [len(piece)]
                    out += [piece[a:b] for a, b in zip(cuts, cuts[1:])]
                    continue
                for m in rx.finditer(piece):
                    if m.start() > at: out.append(piece[at:m.start()])
                    out.append(m.group()) if m.group() else None; at = m.end()
                if at < len(piece): out.append(piece[at:])
            pieces = out
        return [len(p.encode()) for p in pieces]
    return split


WORDS = """the quick brown Fox JUMPS over lazy dogs can't WE'LL they'd YOU'RE it'S I've I'M o'clock 'tis rock'n'roll HTTPServer
getElementById iPhone McDonald naïve café Straße ΑΒΓδεζ Привет МИР İstanbul ıssız ǅungla ǈ ʕ ʰ ˇ ªº æøå ſ 'ſ 'ſt ﬁ ﬀ K Ω Å
日本語 カタカナ ひらがな 漢字々〆 한국어 조합형 مرحبا بالعالم שלום नमस्ते दुनिया สวัสดี ภาษาไทย ភាសាខ្មែរ မြန်မာ ქართული ᲐᲑᲒ ᎣᏏᏲ ꭰ 𐐀𐐨 𝒜𝓑
é ä́ ồ å̈ z̸̢̛ Việt Nam ㄅㄆ 〇 ㍿ ⅷ ½ ² ₃ ① ٣ ۴ ५ ๓ １２３ 𝟘 Ⅻ 123 4567890 3.14 1,000 0xFF 1e-9 2024-11-29 12:30""".split()
MARKS = """. , ! ? ; : ' " ` ~ @ # $ % ^ & * ( ) - _ = + [ ] { } \\ | / < > … – — ‘ ’ “ ” « » ¡ ¿ § ¶ • € £ ¥ © ™ ° ± × ÷ ¬ 。 ， 、 「 」 《 》
！ ？ ～ ￥ । ۔ ، ؟ → ⇒ ∀ ∑ √ ≤ ■ ☃ ♥ 👩‍👩‍👧‍👦 👍🏽 🇫🇷 😀 ❤️ 1️⃣ \u200d \u200b \ufeff \u0301 \u0300\u0323 \u093f \ufe0f \u20dd \U000e0100 \u00ad \ufffd
\U0001faea \ue000 \x00 \x01 \x1b \x7f \x85 \U0010ffff \u0378 ... !!! --- === //// ?/ ./ />\n ;\n \\n <|im_end|> <think> </s> http://a.b/c?d=e&f=%20""".split(" ")
MARKS = [m for x in MARKS for m in x.split("\n")] + ["/>\n", ";\n", ")\r\n", "/\n/"]
GAPS = [" ", " ", " ", "", "", "  ", "   ", "        ", "\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n ", " \n \n ", "\t\t", "\u00a0", "\u2003",
        "\u3000", "\u2028", "\x0b", "\x0c", "\x85", "\x1c", "\u180e", " \t \u00a0", " " * 33]


def classes(lo, hi):
    return [c for c in map(chr, range(lo, hi)) if not 0xD800 <= ord(c) < 0xE000]


def text(r):
    kind = r.random()
    if kind < 0.6:
        out = ""
        for _ in range(r.randint(1, 10)):
            out += r.choice(GAPS) + (r.choice(WORDS) if r.random() < 0.6 else r.choice(MARKS))
        return out + r.choice(["", "", "", " ", "\n", "  "])
    if kind < 0.8:                                      # short alphabets: every neighbourhood
        alphabet = r.choice(["aA1 '!\n", "aB \u0301!", "A\u0301a あ", "Aａあ\u0301ʰ 1'sS", " \n\r\t.", "12 ,.a", " '\u017fsStTlLeErRvVdDmM", "/\n\r .a",
                             "a \u0301\u3000漢A々1", " \u00a0\n1", "(a|.b,!) ", "．，。「ａ1 ", "٣1a ²½"])
        return "".join(r.choice(alphabet) for _ in range(r.randint(1, 16)))
    if kind < 0.97:                                     # any character, neighbours of one block
        base = r.choice([0, 0x80, 0x100, 0x250, 0x300, 0x370, 0x590, 0x900, 0xE00, 0x1000, 0x10A0, 0x1C80, 0x1D00, 0x1E00, 0x2000, 0x2100, 0x2190,
                         0x2C00, 0x3000, 0x3100, 0x4DB0, 0x9F80, 0xA640, 0xAC00, 0xD7A0, 0xF900, 0xFB00, 0xFE00, 0xFF00, 0x10400, 0x11600, 0x1D400,
                         0x1F300, 0x1F600, 0x1FA60, 0x2A6D0, 0x30000, 0xE0000])
        return "".join(r.choice(classes(base, base + 96)) + r.choice(["", "", "a", " ", "'s", "\u0301"]) for _ in range(r.randint(1, 8)))
    return "".join(chr(c) for c in (r.choice([r.randrange(0xD800), r.randrange(0xE000, 0x110000)]) for _ in range(r.randint(1, 8))))


def main():
    out, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 330
    r = random.Random(20240607)
    hf = {n: hugging_face(p) for n, p in PATTERNS.items()}
    py = {n: python(p, PYTHON.get(n, 0)) for n, p in PATTERNS.items()}
    texts, rows, dropped = [], {n: [] for n in PATTERNS}, {n: 0 for n in PATTERNS}
    while len(texts) < count:
        s = text(r)
        if not s: continue
        got = {n: hf[n](s) for n in PATTERNS}
        differ = [n for n in PATTERNS if n not in ALONE and py[n](s) != got[n]]
        for n in differ:
            dropped[n] += 1
            if dropped[n] <= 3: print("differ", n, repr(s), py[n](s), got[n], file=sys.stderr)
        if differ: continue
        texts.append(s)
        for n in PATTERNS: rows[n].append(got[n])
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "texts.jsonl"), "w") as f:
        for s in texts: f.write(json.dumps(s) + "\n")
    for n in PATTERNS:
        with open(os.path.join(out, n + ".txt"), "w") as f:
            for lengths in rows[n]: f.write(" ".join(map(str, lengths)) + "\n")
    print("dropped where the two engines differ:", {n: k for n, k in dropped.items() if k}, file=sys.stderr)


if __name__ == "__main__":
    main()
