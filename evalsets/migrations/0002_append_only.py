from django.db import migrations

# One function for every append-only table; each table has its own trigger.
FUNCTION = """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are append-only: % refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'restrict_violation';
END
$$;
"""

TRIGGER = """
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {table}
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("evalsets", "0001_initial")]

    operations = [
        migrations.RunSQL(FUNCTION, "DROP FUNCTION refuse_change();"),
        migrations.RunSQL(
            TRIGGER.format(table="evalsets_event"), "DROP TRIGGER append_only ON evalsets_event;"
        ),
    ]
