"""`patchlog demo`, as a newcomer runs it."""

import re


def test_demo_ends_with_copies_that_are_all_the_same(command, tmp_path):
    ended = command("demo", "--no-spark", "--folder", "a folder")

    text = ended.stdout.decode()
    assert (ended.returncode, ended.stderr) == (0, b""), text
    assert "people is sound: 4 patches" in text
    assert text.count(": 6 quads") == 3
    assert "Yes, all of them." in text
    assert f"All files are in {tmp_path / 'a folder'}" in text
    assert (tmp_path / "a folder" / "patchlog.db").exists()
    assert list(tmp_path.iterdir()) == [tmp_path / "a folder"]


def test_demo_leaves_a_database_alone(command, tmp_path):
    (tmp_path / "patchlog.db").write_bytes(b"mine")

    ended = command("demo", "--no-spark", "--folder", ".")

    assert (ended.returncode, b"has a patchlog.db already" in ended.stderr) == (1, True)
    assert (tmp_path / "patchlog.db").read_bytes() == b"mine"


def test_demo_ends_its_service(command):
    text = command("demo", "--no-spark").stdout.decode()

    url = re.search(r"http://127.0.0.1:[0-9]+", text)[0]
    gone = command("log", "list", "--url", url)
    assert (gone.returncode, b"cannot be reached" in gone.stderr) == (1, True)
