from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evalsets", "0003_leaner_indexes"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="importedfile",
            name="imported_file_kind_unknown",
        ),
        migrations.AlterField(
            model_name="importedfile",
            name="kind",
            field=models.CharField(
                choices=[
                    ("questions", "questions"),
                    ("chunks", "chunks"),
                    ("run", "run"),
                    ("qrels", "qrels"),
                    ("verdicts", "verdicts"),
                    ("judge", "outside judge"),
                ],
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="importedfile",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("kind__in", ["questions", "chunks", "run", "qrels", "verdicts", "judge"])
                ),
                name="imported_file_kind_unknown",
            ),
        ),
    ]
