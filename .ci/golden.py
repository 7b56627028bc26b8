"""Compare what minfer's commands print with reference data.

    golden.py tokenizer MINFER GOLDEN
    golden.py logits    MINFER GOLDEN

Standard library only. Exits with 1 and a line for each difference.
"""

import array
import json
import os
import pathlib
import subprocess
import sys
import tempfile

faults = []


def fault(text):
    faults.append(text)
    print(text)


def tokenizer(minfer, golden):
    """Every row's ids, control tokens parsed, through `minfer tokenize --jsonl`."""
    for rows_path in sorted((golden / "tokenizer").glob("*.jsonl")):
        rows = [json.loads(line) for line in rows_path.read_text(encoding="utf-8").split("\n") if line]
        vocab = golden / "vocab" / (rows_path.stem + "-vocab.gguf")
        given = "".join(json.dumps({"text": r["text"]}) + "\n" for r in rows)
        out = subprocess.run([minfer, "tokenize", vocab, "--jsonl"], input=given.encode(), stdout=subprocess.PIPE, check=True).stdout
        answers = [json.loads(line)["ids"] for line in out.splitlines()]
        if len(answers) != len(rows):
            fault(f"{rows_path.stem}: {len(answers)} answers to {len(rows)} rows")
        wrong = [(r, a) for r, a in zip(rows, answers) if r["ids"] != a]
        for r, a in wrong[:5]:
            fault(f"{rows_path.stem}: {r['text'][:60]!r}: {a[:12]}, want {r['ids'][:12]}")
        print(f"{rows_path.stem}: {len(rows) - len(wrong)} of {len(rows)} rows equal")


def floats(path):
    a = array.array("f")
    a.frombytes(pathlib.Path(path).read_bytes())
    if sys.byteorder == "big":
        a.byteswap()
    return a


def deviation(have, want):
    """Mean and largest |difference|, and the spread of want."""
    if len(have) != len(want):
        raise SystemExit(f"{len(have)} logits, want {len(want)}")
    d = [abs(x - y) for x, y in zip(have, want)]
    return sum(d) / len(d), max(d), max(want) - min(want)


def logits(minfer, golden):
    """Logits against references, and equal bits for every chunk and number of threads."""
    tokens = golden / "tokens.txt"
    with tempfile.TemporaryDirectory() as tmp:

        def run(model, name, *flags, **env):
            out = os.path.join(tmp, name)
            subprocess.run([minfer, "logits", model, "--tokens", tokens, "--out", out, *flags], env={**os.environ, **env}, check=True)
            return out

        for model in sorted((golden / "models").glob("*.gguf")):
            base = str(golden / "logits" / model.stem)
            peer = floats(base + ".llamacpp.f32")
            for cells in "f32", "f16":
                whole = run(model, "whole", "--cache-type", cells)
                bits = pathlib.Path(whole).read_bytes()
                for chunk, threads in (1, 1), (7, 2), (64, 3), (7, 8), (1, 3), (40, 1):
                    other = run(model, "other", "--cache-type", cells, "--chunk", str(chunk), "--threads", str(threads))
                    if pathlib.Path(other).read_bytes() != bits:
                        fault(f"{model.stem}: --chunk {chunk} --threads {threads} --cache-type {cells} changes bits")
                if cells == "f32":
                    own = floats(whole)
            if model.stem.endswith("-f32"):
                mean, largest, spread = deviation(own, peer)
                print(f"{model.stem}: largest difference {largest / spread:.2e} of the spread")
                if largest > 1e-4 * spread:
                    fault(f"{model.stem}: above 1e-4 of the spread")
                continue
            exact = floats(base + ".exact.f32")
            mean, largest, spread = deviation(own, exact)
            peer_mean, peer_largest, _ = deviation(peer, exact)
            print(f"{model.stem}: mean {mean / peer_mean:.3f} and largest {largest / peer_largest:.3f} of llama.cpp's differences")
            if mean > peer_mean or largest > 1.15 * peer_largest:
                fault(f"{model.stem}: further from the exact logits than llama.cpp")
            _, largest, spread = deviation(floats(run(model, "reference", "--cache-type", "f32", MINFER_F32_ACTIVATIONS="1")), exact)
            if largest > 1e-4 * spread:
                fault(f"{model.stem}: with MINFER_F32_ACTIVATIONS=1 {largest / spread:.2e} of the spread, above 1e-4")


def main():
    what, minfer, golden = sys.argv[1:]
    {"tokenizer": tokenizer, "logits": logits}[what](minfer, pathlib.Path(golden))
    sys.exit(1 if faults else 0)


main()
