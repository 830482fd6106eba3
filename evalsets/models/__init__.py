from evalsets.models.chunks import Chunk, ChunkRevision
from evalsets.models.evalset import EvalSet, Member, default_scale
from evalsets.models.events import Event
from evalsets.models.imports import ImportedFile
from evalsets.models.jobs import Job, Upload
from evalsets.models.lookups import CollatedIContains
from evalsets.models.questions import Question
from evalsets.models.tokens import ApiToken
from evalsets.models.users import User

__all__ = [
    "ApiToken",
    "Chunk",
    "ChunkRevision",
    "CollatedIContains",
    "EvalSet",
    "Event",
    "ImportedFile",
    "Job",
    "Member",
    "Question",
    "Upload",
    "User",
    "default_scale",
]
