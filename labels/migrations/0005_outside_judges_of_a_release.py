import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    """Which outside judges a release let in, by name. None could have been let in before: there was no way to bring
    their grades."""

    dependencies = [
        ("labels", "0004_text_mappings"),
    ]

    operations = [
        migrations.RemoveField(model_name="release", name="include_models"),
        migrations.AddField(
            model_name="release",
            name="judges",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.TextField(),
                default=list,
                help_text="Outside judges whose grades are labels where no person gave one; such labels are marked.",
                size=None,
            ),
        ),
        migrations.AlterField(
            model_name="releasequestion",
            name="judgment_counts",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.SmallIntegerField(),
                help_text="How many judgments the label stands on.",
                size=None,
            ),
        ),
        migrations.AlterField(
            model_name="releasequestion",
            name="model_chunk_ids",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.IntegerField(),
                default=list,
                help_text="Chunks whose label is an outside judge's.",
                size=None,
            ),
        ),
    ]
