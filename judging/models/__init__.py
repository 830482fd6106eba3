from judging.models.batches import Batch, BatchPair, BatchQuerySet, BatchQuestion, Task
from judging.models.classes import ChunkClass, ClassMember, PairVerdict
from judging.models.figures import KeptFigures
from judging.models.judgments import Judgment
from judging.models.people import Assessor, Rubric

__all__ = [
    "Assessor",
    "Batch",
    "BatchPair",
    "BatchQuerySet",
    "BatchQuestion",
    "ChunkClass",
    "ClassMember",
    "Judgment",
    "KeptFigures",
    "PairVerdict",
    "Rubric",
    "Task",
]
