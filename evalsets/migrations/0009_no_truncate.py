from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("evalsets", "0008_chunk_trigrams")]

    operations = [
        migrations.RunSQL(
            "CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON evalsets_event "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();",
            "DROP TRIGGER append_only_truncate ON evalsets_event;",
        )
    ]
