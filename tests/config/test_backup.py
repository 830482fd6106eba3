"""What pg_dump wrote, pg_restore brings back: rows, constraints and the triggers that guard them."""

from __future__ import annotations

import pytest

from config.backup import restore
from evalsets.errors import Refused
from tests.config.conftest import holder


def test_backup_comes_back_whole_in_another_home(homestead, second_home, tmp_path):
    file = tmp_path / "fairpool.dump"
    script = (
        "import django; django.setup()\n"
        "from evalsets.models import EvalSet, Event\n"
        "print(EvalSet.objects.get(slug='handbook').name, Event.objects.count(), flush=True)\n"
    )
    with holder(homestead):  # one start for all commands
        made = homestead.manage("create_evalset", "handbook", "--name", "Support – Ünïcode")
        assert made.returncode == 0, made.stderr
        done = homestead.manage("backup", str(file))
        assert done.returncode == 0, done.stderr
        before = homestead.run("-c", script).stdout

    with holder(second_home):
        done = second_home.manage("restore", str(file))
        assert done.returncode == 0, done.stderr
        assert second_home.manage("migrate", "--check").returncode == 0
        # Append-only tables are append-only still.
        refused = second_home.run("-c", script + "Event.objects.all().delete()")
        assert "Support – Ünïcode" in refused.stdout
        assert refused.stdout == before
        assert "append-only" in refused.stderr

        again = second_home.manage("restore", str(file))
        assert again.returncode == 3
        assert "not empty" in again.stderr


def test_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(Refused, match="no file"):
        restore(tmp_path / "missing.dump")
