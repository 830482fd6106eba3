from django.db import migrations

# Chunk arrays stay in the row itself up to about 2,000 entries, rather than in the table of long values: pooling reads
# 20,000 of them at once and took twice as long when each needed a look-up of its own.
TABLE = "pooling_ranking"


class Migration(migrations.Migration):
    dependencies = [("pooling", "0001_initial")]

    operations = [
        migrations.RunSQL(
            f"ALTER TABLE {TABLE} ALTER chunk_ids SET STORAGE MAIN; ALTER TABLE {TABLE} SET (toast_tuple_target = 8160);",
            f"ALTER TABLE {TABLE} ALTER chunk_ids SET STORAGE EXTENDED; ALTER TABLE {TABLE} RESET (toast_tuple_target);",
        )
    ]
