"""Cut passages of a run on their way into the database: chunks of their own, each bound to the one it was cut from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evalsets.models import EvalSet
from pooling.formats import CutPassage
from pooling.services.importing.chunks import text_hash
from pooling.services.importing.staging import copy_rows, execute, fetch, make_table, refresh_statistics

STAGE = """
    position int GENERATED ALWAYS AS IDENTITY, external_id text COLLATE "C", whole_id int, text text, text_hash text,
    chunk_id int
"""


def write_cut_passages(
    evalset: EvalSet, passages: Sequence[CutPassage], chunk_ids: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """Write those that are not there yet; the Chunk.id of each. `chunk_ids` are those of the run's chunks, by position.

    A chunk that came in by a cut passage's ID before (from an exported file, say) is bound to its whole chunk, too.
    What was cut from a cut passage is cut from the whole chunk.
    """
    make_table("import_cut", STAGE)
    copy_rows(
        "import_cut",
        ("external_id", "whole_id", "text", "text_hash"),
        (
            (passage.id, int(chunk_ids[passage.whole]), passage.text, text_hash("", passage.text))
            for passage in passages
        ),
    )
    execute(
        """
        INSERT INTO evalsets_chunk (evalset_id, external_id, has_text, cut_from_id)
        SELECT %s, s.external_id, true, coalesce(whole.cut_from_id, whole.id)
        FROM import_cut s JOIN evalsets_chunk whole ON whole.id = s.whole_id
        ORDER BY s.position
        ON CONFLICT (evalset_id, external_id) DO UPDATE SET cut_from_id = EXCLUDED.cut_from_id
        WHERE evalsets_chunk.cut_from_id IS NULL
        """,
        [evalset.pk],
    )
    # Looked up row by row through the index: a join's plan would hang on how many rows the planner expects.
    execute(
        """
        UPDATE import_cut s SET chunk_id = (
            SELECT c.id FROM evalsets_chunk c WHERE c.evalset_id = %s AND c.external_id = s.external_id
        )
        """,
        [evalset.pk],
    )
    execute(
        "UPDATE evalsets_chunk c SET has_text = true FROM import_cut s WHERE c.id = s.chunk_id AND NOT c.has_text"
    )
    execute(
        """
        INSERT INTO evalsets_chunkrevision
            (chunk_id, number, title, text, text_hash, doc_id, url, scope, source_revision, metadata)
        SELECT s.chunk_id, 1, '', s.text, s.text_hash, '', '', '', '', '{}' FROM import_cut s
        WHERE NOT EXISTS (SELECT FROM evalsets_chunkrevision r WHERE r.chunk_id = s.chunk_id)
        """
    )
    refresh_statistics("evalsets_chunk", "evalsets_chunkrevision")
    return np.array([pk for (pk,) in fetch("SELECT chunk_id FROM import_cut ORDER BY position")], np.int32)
