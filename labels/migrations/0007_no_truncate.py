from django.db import migrations

APPEND_ONLY = ["labels_release", "labels_releasequestion", "labels_releaseclass"]


class Migration(migrations.Migration):
    dependencies = [("labels", "0006_classes_by_chunk"), ("evalsets", "0002_append_only")]

    operations = [
        migrations.RunSQL(
            f"CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();",
            f"DROP TRIGGER append_only_truncate ON {table};",
        )
        for table in APPEND_ONLY
    ]
