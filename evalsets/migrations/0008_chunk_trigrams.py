from django.contrib.postgres.indexes import GinIndex, OpClass
from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations
from django.db.models.functions import Upper


class Migration(migrations.Migration):
    dependencies = [
        ("evalsets", "0007_chunks_without_text_and_revised"),
    ]

    operations = [
        TrigramExtension(),
        migrations.AddIndex(
            model_name="chunk",
            index=GinIndex(OpClass(Upper("external_id"), "gin_trgm_ops"), name="chunk_id_trigrams"),
        ),
        migrations.AddIndex(
            model_name="chunkrevision",
            index=GinIndex(
                OpClass(Upper("title"), "gin_trgm_ops"),
                OpClass(Upper("text"), "gin_trgm_ops"),
                name="revision_trigrams",
            ),
        ),
    ]
