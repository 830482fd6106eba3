"""What a batch would cost, before it is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judging.pool_report import PoolReport
from judging.services.batch_pairs import BatchRow
from judging.services.gold import decided_answers, gold_count, not_read_by_all
from judging.services.remainder import judged_too_seldom
from pooling.models import Pool


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a lead has said so far of a batch of the pool. `gold` is "", "decided" or "file"; shares are from 0 to 1.

    `assessors`: the `Assessor.id` of those of the `people` who have judged in the eval set before.
    """

    pool: Pool
    people: int
    assessors: Sequence[int]
    overlap: int = 1
    overlap_share: float = 0.0
    without_copies: bool = False
    again: bool = False
    gold: str = ""
    gold_share: float = 0.0


@dataclass(frozen=True)
class Cost:
    """What a batch of a pool would cost."""

    pairs: int
    questions: int
    waiting_for_text: int
    queued: int
    # Pairs whose chunk is in a class that is judged for the question: what leaving copies out saves, or has saved.
    copies: int
    # Judged pairs among `pairs` that go in for second judgments.
    again: int
    judgments: int
    gold_pairs: int
    # Known answers that can be drawn; None where a file has them.
    gold_known: int | None
    seconds: float
    people: int
    seconds_per_judgment: float
    timed_judgments: int

    @property
    def seconds_each(self) -> float:
        return self.seconds / max(1, self.people)


def batch_cost(plan: Plan, pool: PoolReport) -> Cost:
    """The remainder that the report of the plan's pool says, and the hours that judging it takes, gold included."""
    numbers = pool.numbers
    copies = numbers.totals.in_judged_class
    left_out = plan.without_copies
    of_question = pool.questions.column("remainder")
    if left_out:
        of_question = of_question - pool.questions.column("in_judged_class")
    left = set(pool.questions.question_ids[of_question > 0].tolist())
    pairs = numbers.totals.remainder - (copies if left_out else 0)
    judgments = pairs + round(plan.overlap_share * pairs) * (plan.overlap - 1)
    again: list[BatchRow] = []
    if plan.again and plan.overlap > 1:
        again = judged_too_seldom(
            pool=plan.pool,
            wanted=plan.overlap,
            share=plan.overlap_share,
            assessors=plan.assessors,
            people=plan.people,
            seed=0,
        )
        judgments += sum(row.wanted for row in again)
        left |= {row.question_id for row in again}
    known: int | None = None
    gold_pairs = gold_count(plan.gold_share, judgments, plan.people) if plan.gold and judgments else 0
    if plan.gold == "decided":
        answers = decided_answers(evalset=plan.pool.evalset, questions=left)
        known = len(
            not_read_by_all(plan.pool.evalset, answers, assessors=plan.assessors, people=max(1, plan.people))
        )
        gold_pairs = min(gold_pairs, known)
    all_judgments = judgments + gold_pairs * plan.people
    return Cost(
        pairs=pairs + len(again),
        questions=len(left),
        waiting_for_text=numbers.totals.waiting_for_text,
        queued=numbers.totals.queued,
        copies=copies,
        again=len(again),
        judgments=judgments,
        gold_pairs=gold_pairs,
        gold_known=known,
        seconds=all_judgments * numbers.seconds_per_judgment,
        people=plan.people,
        seconds_per_judgment=numbers.seconds_per_judgment,
        timed_judgments=numbers.timed_judgments,
    )
