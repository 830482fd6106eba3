"""The embedded servers live exactly as long as somebody uses them, whatever happens to whom."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from pathlib import Path

import psycopg
import pytest

from config.embedded import EmbeddedError, Postgres, Valkey, folder_outside
from config.embedded.home import Home, free_port
from tests.config.conftest import Homestead, holder
from tests.waiting import wait_until


def connect(homestead: Homestead) -> psycopg.Connection:
    return psycopg.connect(Postgres(homestead.home).url(), autocommit=True)


def gone(homestead: Homestead) -> bool:
    return not homestead.processes()


def test_last_one_out_stops_the_server(homestead):
    with holder(homestead) as (_, port):
        with holder(homestead) as (_, second_port):
            assert second_port == port
        with connect(homestead) as connection:  # one is still there
            assert connection.execute("SELECT 1").fetchone() == (1,)
    wait_until(lambda: gone(homestead))


@pytest.mark.parametrize("kind", ["Postgres", "Valkey"])
def test_killed_user_leaves_nothing_behind(homestead, kind):
    with holder(homestead, kind) as (process, _):
        process.kill()
    wait_until(lambda: gone(homestead))
    with holder(homestead, kind):
        pass


def test_killed_postmaster_comes_back_on_its_port_with_its_data(homestead):
    with holder(homestead) as (_, port):
        with connect(homestead) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS kept (word text)")
            connection.execute("INSERT INTO kept VALUES ('confirmed')")
        homestead.kill("bin/postgres", "-D")
        with holder(homestead) as (_, second_port):
            assert second_port == port
        with connect(homestead) as connection:
            assert connection.execute("SELECT count(*) FROM kept WHERE word = 'confirmed'").fetchone() == (1,)
            connection.execute("DROP TABLE kept")


def test_killed_keeper_takes_the_server_along_and_both_come_back(homestead):
    with holder(homestead):
        homestead.kill("config.embedded.keeper", "postgres")
        with holder(homestead), connect(homestead) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_pid_file_that_names_a_strange_process_does_not_hinder(homestead):
    with holder(homestead):
        data = Postgres(homestead.home).data
    wait_until(lambda: gone(homestead))
    # As after a crash and a restart of the machine, when another program has got the number.
    (data / "postmaster.pid").write_text(f"{os.getpid()}\n{data}\n0\n54320\n\n127.0.0.1\n")
    with holder(homestead), connect(homestead) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("kind", [Postgres, Valkey])
def test_port_in_use_is_stepped_around(homestead, kind):
    with holder(homestead, kind.__name__) as (_, port):
        pass
    wait_until(lambda: gone(homestead))
    with socket.create_server(("127.0.0.1", port)), holder(homestead, kind.__name__) as (_, other):
        assert other != port
    wait_until(lambda: gone(homestead))


def test_two_homes_run_side_by_side(homestead, second_home):
    with holder(homestead) as (_, port), holder(second_home) as (_, other):
        assert port != other
        with connect(homestead) as first, connect(second_home) as second:
            first.execute("CREATE TABLE only_here ()")
            assert second.execute("SELECT to_regclass('only_here')").fetchone() == (None,)
            first.execute("DROP TABLE only_here")


def test_server_is_durable_guarded_and_sorts_by_code_point(homestead):
    with holder(homestead) as (_, port), connect(homestead) as connection:
        settings = dict(connection.execute("SELECT name, setting FROM pg_settings").fetchall())
        assert settings["fsync"] == settings["synchronous_commit"] == settings["full_page_writes"] == "on"
        assert settings["listen_addresses"] == "127.0.0.1"
        assert settings["server_encoding"] == "UTF8"
        assert settings["server_version"].startswith("18.")
        words = connection.execute(
            "SELECT w FROM unnest(%s::text[]) w ORDER BY w", [["b", "ä", "A", "a", "B"]]
        )
        assert [word for (word,) in words] == ["A", "B", "a", "b", "ä"]
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(f"postgresql://fairpool:guess@127.0.0.1:{port}/fairpool")


def test_server_never_runs_as_root(homestead):
    with holder(homestead):
        uids = {Path(f"/proc/{pid}").stat().st_uid for pid in homestead.pids("bin/postgres", "-D")}
    assert uids
    assert 0 not in uids


def test_command_has_the_database_for_its_own_duration(homestead):
    assert "[ ] 0001_initial" in homestead.manage("showmigrations", "evalsets").stdout
    wait_until(lambda: gone(homestead))


def test_dbshell_brings_its_own_psql(homestead):
    shell = homestead.manage("dbshell", "--", "-XAtc", "SELECT current_database()")
    assert shell.stdout.strip() == "fairpool"


@pytest.mark.parametrize("arguments", [["--help"], ["check"], ["help", "migrate"]])
def test_command_without_database_starts_nothing(second_home, arguments):
    done = second_home.manage(*arguments)
    assert done.returncode == 0, done.stderr
    assert not list(second_home.home.run.glob("postgres.*"))


def test_nothing_embedded_is_imported_with_servers_given(second_home):
    second_home.environment |= {
        "DATABASE_URL": "postgresql://db.example/fairpool",
        "REDIS_URL": "redis://redis.example",
        "SECRET_KEY": "for this test",
    }
    script = (
        "import django, sys; django.setup(); from django.db import connection;"
        "print(connection.settings_dict['HOST'], [m for m in sys.modules if m.startswith('config.embedded')])"
    )
    assert second_home.run("-c", script).stdout.strip() == "db.example []"
    assert not second_home.path.exists()


def test_home_that_cannot_be_written_says_so(second_home):
    second_home.path.write_text("a file where the folder should be")
    done = second_home.manage("showmigrations")
    assert done.returncode != 0
    assert "FAIRPOOL_HOME" in done.stderr
    assert str(second_home.path) in done.stderr


def test_missing_wheel_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr("config.embedded.postgres.WHEEL", "no-such-wheel")
    with pytest.raises(EmbeddedError, match="make setup"):
        Postgres(Home(tmp_path)).prepare()


def test_data_of_another_version_is_refused(homestead):
    with holder(homestead):
        version = Postgres(homestead.home).data / "PG_VERSION"
    wait_until(lambda: gone(homestead))
    right = version.read_text()
    version.write_text("12\n")
    try:
        done = homestead.manage("showmigrations")
        assert "was made by Postgres 12" in done.stderr
        assert "Traceback" not in done.stderr
    finally:
        version.write_text(right)


def test_database_of_an_earlier_home_is_set_aside_not_lost(second_home):
    with holder(second_home), connect(second_home) as connection:
        connection.execute("CREATE TABLE old ()")
    wait_until(lambda: gone(second_home))
    (second_home.path / "postgres.password").unlink()
    with holder(second_home), connect(second_home) as connection:
        assert connection.execute("SELECT to_regclass('old')").fetchone() == (None,)
    assert len(list(Postgres(second_home.home).data.parent.glob("data.set-aside-*"))) == 1


def test_secrets_are_kept_and_for_the_owner_only(tmp_path):
    home = Home(tmp_path / "home")
    secret = home.secret("secret_key")
    assert home.secret("secret_key") == secret
    assert len(secret) >= 50
    assert stat.S_IMODE((home.path / "secret_key").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700


def test_folders_above_the_home_keep_their_permissions(second_home):
    above = second_home.path.parent
    above.chmod(0o700)
    with holder(second_home):
        pass
    assert stat.S_IMODE(above.stat().st_mode) == 0o700


def test_free_port_steps_around_what_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert free_port(port) != port
    assert free_port(port) == port


def test_clean_data_asks_and_deletes_only_what_is_ours(second_home):
    with holder(second_home):
        assert "running" in second_home.manage("clean_data", "--yes").stderr
    wait_until(lambda: gone(second_home))
    mine = second_home.path / "thesis.txt"
    mine.write_text("not Fairpool's")
    assert "Nothing was deleted" in second_home.manage("clean_data").stderr
    assert (second_home.path / "postgres.password").exists()
    assert second_home.manage("clean_data", "--yes").returncode == 0
    assert not folder_outside(second_home.home).exists()
    assert not (second_home.path / "postgres").exists()
    assert mine.exists()
    shutil.rmtree(second_home.path)
