"""Cut passages of a run on their way into the database: chunks of their own, each bound to the one it was cut from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evalsets.models import Chunk, EvalSet
from pooling.formats import CutPassage
from pooling.services.importing.chunks import text_hash
from pooling.services.importing.staging import copy_rows, execute, make_table, refresh_statistics

STAGE = 'external_id text COLLATE "C", whole_id int, text text, text_hash text'


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
        INSERT INTO evalsets_chunk (evalset_id, external_id, cut_from_id)
        SELECT %s, s.external_id, coalesce(whole.cut_from_id, whole.id)
        FROM import_cut s JOIN evalsets_chunk whole ON whole.id = s.whole_id
        ON CONFLICT (evalset_id, external_id) DO UPDATE SET cut_from_id = EXCLUDED.cut_from_id
        WHERE evalsets_chunk.cut_from_id IS NULL
        """,
        [evalset.pk],
    )
    execute(
        """
        WITH told AS (
            UPDATE evalsets_chunk c SET has_text = true FROM import_cut s
            WHERE c.evalset_id = %s AND c.external_id = s.external_id AND NOT c.has_text
            RETURNING c.id, s.text, s.text_hash
        )
        INSERT INTO evalsets_chunkrevision
            (chunk_id, number, title, text, text_hash, doc_id, url, scope, source_revision, metadata)
        SELECT id, 1, '', text, text_hash, '', '', '', '', '{}' FROM told
        """,
        [evalset.pk],
    )
    refresh_statistics("evalsets_chunk", "evalsets_chunkrevision")
    written = dict(
        Chunk.objects.filter(
            evalset=evalset, external_id__in=[passage.id for passage in passages]
        ).values_list("external_id", "pk")
    )
    return np.array([written[passage.id] for passage in passages], dtype=np.int32)
