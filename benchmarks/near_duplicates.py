"""Candidates of near copies among many chunks, against datasketch alone on the same texts.

    .venv/bin/python benchmarks/near_duplicates.py [--chunks 100000] [--words 60] [--copies 0.1] [--json]

The reference sketches the same word shingles with the same number of permutations and asks the same index, without
measuring what it finds. The bar is a ratio of 3 and 2 GiB of memory. No database is needed.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from datasketch import MinHash, MinHashLSH

from evalsets.likeness import NEAR, SHINGLE_WORDS, words_of
from labels.duplicates import PERMUTATIONS, near_pairs

BAR = 3.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=60, help="In each chunk.")
    parser.add_argument("--copies", type=float, default=0.1, help="Share of chunks that are changed copies.")
    parser.add_argument("--json", action="store_true", help="Print one JSON document.")
    options = parser.parse_args()
    texts = make_texts(options)

    begun = time.perf_counter()
    pairs = sum(1 for _ in near_pairs(enumerate(texts)))
    ours = time.perf_counter() - begun
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    begun = time.perf_counter()
    found = datasketch_alone(texts)
    alone = time.perf_counter() - begun

    result = {
        "chunks": len(texts),
        "pairs": pairs,
        "pairs_of_datasketch": found,
        "seconds": ours,
        "datasketch_seconds": alone,
        "ratio": ours / alone,
        "bar": BAR,
        "peak_megabytes": megabytes,
    }
    if options.json:
        print(json.dumps(result))
        return
    print(
        f"{len(texts):,} chunks: {pairs:,} pairs in {ours:.1f} s; datasketch alone {found:,} in {alone:.1f} s; "
        f"ratio {ours / alone:.2f} (bar {BAR:g}); peak memory {megabytes:.0f} MB"
    )


def make_texts(options: argparse.Namespace) -> list[str]:
    draw = random.Random(20260301)
    vocabulary = [f"word{number}" for number in range(30_000)]
    fresh = int(options.chunks * (1 - options.copies))
    texts = [" ".join(draw.choices(vocabulary, k=options.words)) for _ in range(fresh)]
    for _ in range(options.chunks - fresh):
        words = draw.choice(texts[:fresh]).split()
        words[draw.randrange(len(words))] = "changed"
        texts.append(" ".join(words))
    draw.shuffle(texts)
    return texts


def datasketch_alone(texts: list[str]) -> int:
    index = MinHashLSH(threshold=NEAR, num_perm=PERMUTATIONS)
    sketches = MinHash.generator(map(shingles, texts), num_perm=PERMUTATIONS)
    found = 0
    for key, sketch in enumerate(sketches):
        found += len(index.query(sketch))
        index.insert(key, sketch)
    return found


def shingles(text: str) -> set[bytes]:
    words = words_of(text)
    return {
        " ".join(words[start : start + SHINGLE_WORDS]).encode()
        for start in range(len(words) - SHINGLE_WORDS + 1)
    }


if __name__ == "__main__":
    main()
