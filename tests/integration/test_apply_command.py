"""`patchlog apply` becomes `python -m spark apply`; what that does is tried in tests/apply."""

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")


def test_user_error_of_the_job_is_that_of_the_command(command, tmp_path):
    database = f"sqlite:///{tmp_path}/none.db"

    ended = command("apply", "--source", database, "--log", "people", "--warehouse", tmp_path / "tables")

    assert (ended.returncode, ended.stdout) == (1, b"")
    assert ended.stderr.startswith(b"error: there is no database")
    assert ended.stderr.count(b"\n") == 1


def test_options_that_the_job_has_not_are_wrong_usage(command, tmp_path):
    ended = command("apply", "--source", "p.rdfp", "--warehouse", tmp_path / "tables", "--no-such-option")

    assert ended.returncode == 2
    assert b"no-such-option" in ended.stderr


def test_what_is_missing_is_named(command):
    ended = command("apply")

    assert ended.returncode == 2
    assert ended.stderr.startswith(b"error: Missing option '--source'")
