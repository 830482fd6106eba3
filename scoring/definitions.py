"""What each number of the scoring pages means, in the words that a `?` beside it opens."""

from __future__ import annotations

from typing import NamedTuple


class Definition(NamedTuple):
    """`name` is what an address says behind its #."""

    name: str
    term: str
    text: str


DEFINITIONS = (
    Definition("recall", "Recall@k", "Relevant chunks within the first k, over all known relevant chunks."),
    Definition("rr", "RR@k", "1 over the rank of the first relevant chunk within k; 0 where there is none."),
    Definition("p", "P@k", "Relevant chunks within k, over k. A short ranking does not shrink k."),
    Definition("success", "Success@k", "1 where something within k is relevant, else 0."),
    Definition(
        "ap",
        "AP@k",
        "The mean of the precisions at the ranks of relevant chunks within k, over all known relevant chunks.",
    ),
    Definition(
        "ndcg",
        "nDCG@k",
        "Each chunk's gain (2^grade − 1, or the grade itself) over log2(rank + 1), summed and divided by what the best "
        "possible order of all labels would give. The threshold plays no part.",
    ),
    Definition(
        "rbp",
        "RBP(p)",
        "(1 − p) times the sum of p^(rank − 1) over relevant chunks. Its residual is how much unjudged chunks, and all "
        "behind the end of the ranking, could still add.",
    ),
    Definition(
        "inferred",
        "infAP, infNDCG@k",
        "AP and nDCG estimated from a sampled pool: each label counts as many pairs as its chance to be drawn says it "
        "stands for.",
    ),
    Definition(
        "judged",
        "Judged@k",
        "Of the chunks returned within k, the share with a label: 1 less the unjudged rate.",
    ),
    Definition(
        "bpref",
        "Bpref",
        "How often judged relevant chunks stand above judged irrelevant ones; unjudged ones are ignored.",
    ),
    Definition(
        "unjudged",
        "Unjudged@k",
        "Of the chunks returned within k, over all questions that have labels, the share without a label. Unjudged is "
        "not zero: nobody looked. Copies of a labelled chunk, in its class, count as judged.",
    ),
    Definition("raw", "Raw", "An unjudged chunk counts as not relevant."),
    Definition(
        "judged-only",
        "Judged-only",
        "Unjudged chunks are removed from the ranking before it is scored. A check beside the raw number, never the "
        "headline: it flatters whoever returned much that nobody judged.",
    ),
    Definition(
        "averaged",
        "Questions averaged",
        "Averages are means over questions. A question without a relevant label, an unanswerable one, or, where the "
        "common questions are scored, one that a run does not rank is left out and listed.",
    ),
    Definition(
        "facts",
        "Required facts covered",
        "Of the facts that a question's answer needs, the share that some returned chunk supports; by question, then "
        "averaged. It is no part of recall.",
    ),
    Definition(
        "wins",
        "Wins, losses, ties",
        "On how many questions B scores higher than A, lower, or the same. Both are compared on the same questions.",
    ),
    Definition(
        "interval",
        "95 % interval",
        "The questions' differences are drawn anew with replacement, 10,000 times; the interval holds the middle 95 % "
        "of the means. Where it straddles zero, the difference is indistinguishable from noise on this set.",
    ),
    Definition(
        "p-value",
        "Randomisation test, p",
        "How often a difference at least this large would come about if the names of the two runs were swapped at "
        "random on each question. Holm's adjustment makes up for the number of comparisons.",
    ),
    Definition(
        "comparisons",
        "Comparisons on a release",
        "Every comparison made on a release is kept. Each one more is a chance to find a difference that is not there; "
        "a holdout split that is looked at often is no holdout any more.",
    ),
    Definition(
        "tau",
        "Kendall's tau",
        "How alike two orders of the systems are: 1 for the same order, 0 for none in common, −1 for the reverse.",
    ),
)
