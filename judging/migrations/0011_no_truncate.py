from django.db import migrations

APPEND_ONLY = ["judging_judgment", "judging_pairverdict", "judging_rubric"]


class Migration(migrations.Migration):
    dependencies = [("judging", "0010_classes_keep_in_step"), ("evalsets", "0002_append_only")]

    operations = [
        migrations.RunSQL(
            f"CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();",
            f"DROP TRIGGER append_only_truncate ON {table};",
        )
        for table in APPEND_ONLY
    ]
