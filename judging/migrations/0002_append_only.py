from django.db import migrations

APPEND_ONLY = ["judging_judgment", "judging_pairverdict", "judging_rubric"]


class Migration(migrations.Migration):
    dependencies = [("judging", "0001_initial"), ("evalsets", "0002_append_only")]

    operations = [
        migrations.RunSQL(
            f"CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION refuse_change();",
            f"DROP TRIGGER append_only ON {table};",
        )
        for table in APPEND_ONLY
    ]
