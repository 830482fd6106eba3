from django.db import migrations

# Whether the texts of today of these chunks are valid in different periods. One with neither date says nothing.
PERIODS = """
CREATE FUNCTION periods_differ(chunks integer[]) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT count(DISTINCT (r.effective_from, r.effective_to)) > 1
    FROM evalsets_chunk c JOIN evalsets_chunkrevision r ON r.chunk_id = c.id AND r.number = c.revision
    WHERE c.id = ANY(chunks) AND (r.effective_from IS NOT NULL OR r.effective_to IS NOT NULL)
$$;
"""

# As before, but no link joins two periods. Where one without dates stands between them, nobody knows to which of them
# it belongs, and the whole class comes apart.
REBUILD = """
CREATE OR REPLACE FUNCTION rebuild_chunk_classes(touched integer[]) RETURNS void LANGUAGE plpgsql AS $$
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
             AND v.verdict = 'same' AND v.of_today AND NOT periods_differ(ARRAY[v.first_id, v.second_id])
        )
        SELECT array_agg(chunk_id) INTO together FROM reached;
        CONTINUE WHEN cardinality(together) < 2 OR periods_differ(together);
        INSERT INTO judging_chunkclass (evalset_id) SELECT evalset_id FROM evalsets_chunk WHERE id = seed
        RETURNING id INTO made;
        INSERT INTO judging_classmember (chunk_class_id, chunk_id) SELECT made, unnest(together);
    END LOOP;
END
$$;
"""

# What holds of these chunks may be another now: a class comes apart, or one that came apart is there again.
AROUND = """
CREATE FUNCTION rebuild_classes_around(changed integer[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    compared integer[];
BEGIN
    IF changed IS NULL THEN
        RETURN;
    END IF;
    SELECT array_agg(DISTINCT chunk_id) INTO compared
    FROM judging_pairverdict v, unnest(ARRAY[v.first_id, v.second_id]) AS chunk_id
    WHERE v.verdict = 'same' AND (v.first_id = ANY(changed) OR v.second_id = ANY(changed));
    IF compared IS NOT NULL THEN
        PERFORM rebuild_chunk_classes(compared);
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION chunks_were_revised() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM rebuild_classes_around((
        SELECT array_agg(after.id) FROM after JOIN before USING (id) WHERE after.revision <> before.revision
    ));
    RETURN NULL;
END
$$;
CREATE FUNCTION periods_were_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM rebuild_classes_around((
        SELECT array_agg(after.chunk_id) FROM after JOIN before USING (id)
        WHERE (after.effective_from, after.effective_to)
              IS DISTINCT FROM (before.effective_from, before.effective_to)
    ));
    RETURN NULL;
END
$$;
CREATE TRIGGER periods_changed AFTER UPDATE ON evalsets_chunkrevision
    REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION periods_were_changed();
"""

ALL = "SELECT rebuild_classes_around((SELECT array_agg(DISTINCT first_id) FROM judging_pairverdict));"


class Migration(migrations.Migration):
    dependencies = [("judging", "0009_no_grades")]

    operations = [migrations.RunSQL(sql) for sql in (PERIODS, REBUILD, AROUND, ALL)]
