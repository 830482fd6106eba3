"""What each number of the agreement page means, in the words that a `?` beside it opens."""

from __future__ import annotations

from typing import NamedTuple


class Definition(NamedTuple):
    """`name` is what an address says behind its #."""

    name: str
    term: str
    text: str


# The definitions of `Agreement.coefficients`, in their order.
OF_COEFFICIENTS = (
    "raw",
    "within-one",
    "ac1",
    "ac2",
    "alpha",
    "alpha-nominal",
    "fleiss",
    "cohen",
    "cohen-weighted",
)

DEFINITIONS = (
    Definition(
        "pairs",
        "Pairs and judgments",
        "Question/chunk pairs whose same text at least two people graded, each for themselves. Decisions of a lead, "
        "grades copied from a near copy, labels carried over, imported files, outside judges and gold pairs (a check "
        "by a known answer) are not among them; nor are skips and “cannot judge”. Of a person's grades of one pair the "
        "latest counts.",
    ),
    Definition(
        "reading",
        "How the verdict is reached",
        "Where one grade is less than 80 % of the judgments, by Krippendorff's ordinal alpha; else by Gwet's AC2. From "
        "0.80 on the judgments can be trusted, from 0.67 on for careful conclusions (Krippendorff's demands). Where "
        "AC2 is read and fewer than 40 % of the pairs that anybody found relevant were so for all, what is relevant is "
        "in dispute, however well people agree on the rest. Below 30 pairs no verdict is given.",
    ),
    Definition(
        "raw",
        "Raw agreement",
        "Of any two judgments of one pair, the share that gave the same grade; averaged over pairs. Says nothing of "
        "chance: where nearly everything is grade 0, even dice weighted so would agree often.",
    ),
    Definition(
        "within-one", "Agreement within one grade", "The same, where neighbouring grades count as agreeing."
    ),
    Definition(
        "ac1",
        "Gwet's AC1",
        "Agreement beyond chance, where chance is taken to play only in pairs that are hard to grade. It does not "
        "collapse where one grade prevails, as it does in relevance pools (Gwet 2008).",
    ),
    Definition(
        "ac2",
        "Gwet's AC2",
        "AC1 with weights: grades that are near each other agree in part, linearly (on a scale of 0 to 3 a difference "
        "of one grade counts as two thirds of agreement) (Gwet 2014).",
    ),
    Definition(
        "alpha",
        "Krippendorff's alpha, ordinal",
        "1 less the disagreement that was seen over the one by chance, for any number of people and with gaps; two "
        "grades are the farther apart the more judgments lie between them (Krippendorff 2011). Where one grade "
        "prevails it is low over a few differences.",
    ),
    Definition(
        "alpha-nominal",
        "Krippendorff's alpha, nominal",
        "The same, with any two different grades equally far apart.",
    ),
    Definition(
        "fleiss",
        "Fleiss' kappa",
        "Agreement beyond chance for any number of people; chance follows from how often all of them together gave "
        "each grade (Fleiss 1971).",
    ),
    Definition(
        "cohen",
        "Cohen's kappa",
        "Agreement beyond chance of two people; chance follows from how often each of the two gave each grade "
        "(Cohen 1960).",
    ),
    Definition(
        "cohen-weighted",
        "Cohen's kappa, linear weights",
        "The same with near misses counted in part, as in AC2 (Cohen 1968).",
    ),
    Definition(
        "overlap",
        "Relevant for all, of relevant for any",
        "Of the pairs that any of their people graded relevant, the share that all of them did. It leaves the many "
        "agreed zeros out (Voorhees 2000 found 42 to 49 % among TREC assessors).",
    ),
    Definition(
        "interval",
        "95 % interval",
        "Pairs are drawn anew, with their judgments, 1,000 times; the interval holds the middle 95 % of the values. "
        "With few pairs it is wide, and with very few it is too narrow to believe.",
    ),
    Definition(
        "higher",
        "Grades higher by",
        "A person's grade less the others' of the same pair, averaged: above 0 is more generous than the others.",
    ),
)
