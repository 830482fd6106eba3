from django.db import migrations

# The verdicts that hold: the latest on two chunks, unless it took the earlier ones back. `of_today` says that both
# texts are the ones that were compared; a verdict on content holds for these texts alone.
STANDING = """
CREATE VIEW judging_standing_verdict AS
SELECT v.id, v.evalset_id, v.first_id, v.second_id, v.verdict,
       a.revision = v.first_revision AND b.revision = v.second_revision AS of_today
FROM judging_pairverdict v
JOIN evalsets_chunk a ON a.id = v.first_id
JOIN evalsets_chunk b ON b.id = v.second_id
WHERE v.verdict <> 'none'
  AND NOT EXISTS (
      SELECT FROM judging_pairverdict later
      WHERE later.first_id = v.first_id AND later.second_id = v.second_id AND later.id > v.id
  );
"""

# Brings the classes of these chunks, and of all that were in one class with them, in step with the verdicts.
REBUILD = """
CREATE FUNCTION rebuild_chunk_classes(touched integer[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    old_classes bigint[];
    seed integer;
    together integer[];
    made bigint;
BEGIN
    SELECT array_agg(DISTINCT chunk_class_id) INTO old_classes
    FROM judging_classmember WHERE chunk_id = ANY(touched);
    SELECT array_agg(DISTINCT chunk_id) INTO touched FROM (
        SELECT unnest(touched) AS chunk_id
        UNION SELECT chunk_id FROM judging_classmember WHERE chunk_class_id = ANY(old_classes)
    ) AS anew;
    DELETE FROM judging_classmember WHERE chunk_class_id = ANY(old_classes);
    DELETE FROM judging_chunkclass WHERE id = ANY(old_classes);

    FOREACH seed IN ARRAY coalesce(touched, '{}') LOOP
        CONTINUE WHEN EXISTS (SELECT FROM judging_classmember WHERE chunk_id = seed);
        WITH RECURSIVE reached (chunk_id) AS (
            SELECT seed
            UNION
            SELECT CASE WHEN v.first_id = reached.chunk_id THEN v.second_id ELSE v.first_id END
            FROM reached
            JOIN judging_standing_verdict v
              ON (v.first_id = reached.chunk_id OR v.second_id = reached.chunk_id)
             AND v.verdict = 'same' AND v.of_today
        )
        SELECT array_agg(chunk_id) INTO together FROM reached;
        CONTINUE WHEN cardinality(together) < 2;
        INSERT INTO judging_chunkclass (evalset_id) SELECT evalset_id FROM evalsets_chunk WHERE id = seed
        RETURNING id INTO made;
        INSERT INTO judging_classmember (chunk_class_id, chunk_id) SELECT made, unnest(together);
    END LOOP;
END
$$;
"""

# A new text of a chunk is not what was compared: it leaves its class, and others may come apart with it.
REVISED = """
CREATE FUNCTION chunks_were_revised() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    revised integer[];
BEGIN
    SELECT array_agg(after.id) INTO revised
    FROM after JOIN before USING (id) JOIN judging_classmember m ON m.chunk_id = after.id
    WHERE after.revision <> before.revision;
    IF revised IS NOT NULL THEN
        PERFORM rebuild_chunk_classes(revised);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER chunks_revised AFTER UPDATE ON evalsets_chunk
    REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION chunks_were_revised();
"""


class Migration(migrations.Migration):
    dependencies = [("judging", "0004_classes")]

    operations = [
        migrations.RunSQL(STANDING, "DROP VIEW judging_standing_verdict;"),
        migrations.RunSQL(REBUILD, "DROP FUNCTION rebuild_chunk_classes(integer[]);"),
        migrations.RunSQL(
            REVISED, "DROP TRIGGER chunks_revised ON evalsets_chunk; DROP FUNCTION chunks_were_revised();"
        ),
    ]
