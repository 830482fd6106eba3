"""How Alice and Bob judge the demo's first batch: near the truth, with slips, over several past days.

Pure arithmetic over the ground truth, so that every new demo has the same judgments. Alice is a little strict and Bob a
little lenient, as people are; each is so by a draw that depends on the pair alone. What they skipped, could not judge,
noted and changed their mind about is written down by hand below.
"""

import datetime
import random
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from demo.ground_truth import Relevance

ALICE, BOB = "alice", "bob"
WORDS_A_SECOND = 5.0
SECONDS_BETWEEN = 1.2  # what passes between two pairs and is nobody's time on a pair
SITTING = datetime.timedelta(minutes=35)

# Working days before today, and the time of day (UTC) at which a sitting begins.
SITTINGS = {
    ALICE: [(8, "09:10"), (7, "09:05"), (6, "10:30"), (4, "09:20"), (3, "09:15"), (2, "09:40"), (2, "14:10")],
    BOB: [(8, "13:40"), (6, "14:05"), (5, "13:30"), (4, "15:00"), (3, "13:45"), (2, "10:20"), (2, "15:30")],
}

# (question, chunk): what was written beside the grade, by whoever judged it.
NOTES = {
    ("q01", "steady-terms#01"): "Section 10 (5) only; the rest of this wall of text is about leasing.",
    ("q02", "returns-2023#02"): "Last edition. 14 days was right until February 2025.",
    ("q03", "returns-2025#02"): "Right policy, wrong year: the question is about May 2024.",
    ("q10", "languages#01"): "Says it in five languages, and rightly.",
    ("q12", "parts#04"): "The outdoor one. Twelve months would be wrong here.",
    ("q17", "faq#05"): "Looks like the handbook's passage on missed visits, copied.",
    ("q20", "faq#02"): "Same words as in the chapter on backup power.",
    ("q24", "steady-terms#01"): "The answer is in section 10; it took a while to find.",
    ("q27", "share-2024#01"): "Old rates.",
    ("q31", "install#03"): "That is the Q12.",
    ("q32", "install#02"): "That is the Q6.",
    ("q54", "staff-goodwill#02"): "Internal. Fine here, since a colleague asks.",
}

# (question, chunk): why the first assessor left it; somebody else then graded it.
SKIPPED = {
    ("q14", "steady-terms#01"): ("other", "Too long for now."),
    ("q41", "steady-terms#01"): ("other", "Ten pages. Somebody with more time, please."),
    ("q52", "warranty-2022#01"): ("unclear-question", "Age of the inverter or of the battery?"),
}

# (question, chunk): why nobody could grade it.
CANNOT_JUDGE = {
    ("q55", "languages#01"): ("needs-expert", "I cannot read half of these languages."),
    ("q10", "app#08"): ("broken-text", "This is source text of a page, not a passage."),
}

# (question, chunk): the grade that was given first and changed a little later.
CHANGED_MIND = {
    ("q08", "error-codes#01"): 0,
    ("q35", "guides#02"): 1,
    ("q46", "moving#03"): 3,
}


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A pair of the batch, by its IDs, and how many judgments it wants."""

    question: str
    chunk: str
    words: int  # of the chunk's text
    wanted: int


@dataclass(frozen=True, kw_only=True)
class Act:
    """One judgment. `kind`, `reason` and the rest are those of a judgment in Fairpool."""

    assessor: str
    question: str
    chunk: str
    kind: str = "grade"
    grade: int | None = None
    reason: str = ""
    note: str = ""
    facts: tuple[str, ...] = ()
    seconds: float
    replaces_earlier: bool = False
    at: datetime.datetime


Truth = Mapping[str, Mapping[str, Relevance]]


def judgments(pairs: Sequence[Pair], truth: Truth, today: datetime.date) -> list[Act]:
    """All acts of both assessors in the order of their times, the last at least two working days before `today`.

    `pairs` come question by question. The questions go to Alice and Bob in turn; who has finished takes the second
    judgments that the other's questions want.
    """
    questions = list(dict.fromkeys(pair.question for pair in pairs))
    owner = {question: (ALICE, BOB)[number % 2] for number, question in enumerate(questions)}
    acts: list[Act] = []
    for who in (ALICE, BOB):
        own = [pair for pair in pairs if owner[pair.question] == who]
        others = [pair for pair in pairs if owner[pair.question] != who and _goes_to_both(pair)]
        clock = _times(who, today)
        next(clock)
        for pair in [*own, *others]:
            for act in _acts(pair, who, truth, first=owner[pair.question] == who):
                acts.append(replace(act, at=clock.send(act.seconds)))
    return sorted(acts, key=lambda act: act.at)


def _goes_to_both(pair: Pair) -> bool:
    return pair.wanted > 1 or _is_skipped(pair)


def _is_skipped(pair: Pair) -> bool:
    # A pair that wants both of them would be left with one judgment.
    return pair.wanted == 1 and (pair.question, pair.chunk) in SKIPPED


def _acts(pair: Pair, who: str, truth: Truth, *, first: bool) -> Iterator[Act]:
    key = (pair.question, pair.chunk)
    draw = random.Random(f"{who} {pair.question} {pair.chunk}")
    seconds = round((3.0 + pair.words / WORDS_A_SECOND) * draw.lognormvariate(0, 0.35), 1)
    act = Act(assessor=who, question=pair.question, chunk=pair.chunk, seconds=min(seconds, 240.0), at=LATER)
    if key in CANNOT_JUDGE:
        reason, note = CANNOT_JUDGE[key]
        yield replace(act, kind="cannot-judge", reason=reason, note=note)
    elif _is_skipped(pair) and first:
        reason, note = SKIPPED[key]
        yield replace(act, kind="skip", reason=reason, note=note, seconds=min(act.seconds, 12.0))
    else:
        grade = _grade_given(pair, who, truth, draw)
        relevance = truth[pair.question].get(pair.chunk)
        graded = replace(
            act,
            grade=grade,
            note=NOTES.get(key, "") if first else "",
            facts=relevance.facts if relevance is not None and grade >= 2 else (),
        )
        if key in CHANGED_MIND and first:
            yield replace(graded, grade=CHANGED_MIND[key], note="")
            graded = replace(graded, replaces_earlier=True, seconds=4.0)
        yield graded


# Stands in an act until its time is known.
LATER = datetime.datetime.max.replace(tzinfo=datetime.UTC)


def _grade_given(pair: Pair, who: str, truth: Truth, draw: random.Random) -> int:
    """The true grade, or now and then the neighbouring one."""
    relevant = truth[pair.question]
    grade = relevant[pair.chunk].grade if pair.chunk in relevant else 0
    luck = draw.random()
    if who == ALICE:
        strict = {1: 0.20, 2: 0.15, 3: 0.04}
        return grade - 1 if luck < strict.get(grade, 0.0) else grade
    good_documents = {chunk.split("#")[0] for chunk, entry in relevant.items() if entry.grade >= 2}
    lenient = {0: 0.25 if pair.chunk.split("#")[0] in good_documents else 0.01, 1: 0.15, 2: 0.10}
    return grade + 1 if luck < lenient.get(grade, 0.0) else grade


def _times(who: str, today: datetime.date) -> Generator[datetime.datetime, float, None]:
    """A clock: send the seconds that a pair took, get the time at which its judgment was saved."""
    sittings = SITTINGS[who]
    seconds = yield LATER
    for number, (days, begins) in enumerate(sittings):
        start = datetime.datetime.combine(
            _working_days_before(today, days), datetime.time.fromisoformat(begins), datetime.UTC
        )
        now = start
        while now - start < SITTING or number == len(sittings) - 1:
            now += datetime.timedelta(seconds=seconds + SECONDS_BETWEEN)
            seconds = yield now


def _working_days_before(day: datetime.date, count: int) -> datetime.date:
    while count:
        day -= datetime.timedelta(days=1)
        count -= day.weekday() < 5
    return day
