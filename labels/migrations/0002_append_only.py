from django.db import migrations

APPEND_ONLY = ["labels_release", "labels_releasequestion", "labels_releaseclass"]


class Migration(migrations.Migration):
    dependencies = [("labels", "0001_releases"), ("evalsets", "0002_append_only")]

    operations = [
        migrations.RunSQL(
            f"CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION refuse_change();",
            f"DROP TRIGGER append_only ON {table};",
        )
        for table in APPEND_ONLY
    ]
