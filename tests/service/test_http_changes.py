"""What was changed between versions, by whom, and taking it back."""

import gzip
import threading

import pytest

from patchlog.cli import main
from patchlog.effect import effect
from patchlog.model import Add, Punctuation, TransactionStart

S = "<http://example.org/{}>"
P = "<http://example.org/p>"


def change(adds="", deletes="", headers=""):
    """The text of a patch that adds and deletes quads, each named by a letter."""
    rows = [f'A {S.format(name)} {P} "{name}" .' for name in adds]
    rows += [f'D {S.format(name)} {P} "{name}" .' for name in deletes]
    return "\n".join([*headers.splitlines(), "TX .", *rows, "TC .", ""]).encode()


@pytest.fixture
def changed(log):
    """Versions 1 to 3: a b, then b again and c but no a, then d."""
    log.append_text(change("ab", headers='H who "Ada" .'))
    log.append_text(change("bc", "a", headers='H who "Bob" .\nH why "tidy" .'))
    log.append_text(change("d") + b'Z .\nTX .\nPA "x" "http://example.org/" .\nTA .\n')
    return log


def names(quads):
    return "".join(sorted(quad[2][1] for quad in quads))


def present(log, operations):
    return names(effect(operations(log.get("/patches").content)).adds)


@pytest.mark.parametrize(
    ("query", "adds", "deletes"),
    [
        ("from=0&to=1", "ab", ""),
        ("from=0&to=2", "bc", "a"),
        ("from=1&to=3", "bcd", "a"),
        ("from=2", "d", ""),
        ("from=2&to=2", "", ""),
        ("from=0&to=0", "", ""),
        ("from=4&to=3", "", ""),
        ("from=2&to=1", "a", "c"),
        ("from=3&to=0", "", "bcd"),
    ],
)
def test_diff_is_the_net_change(changed, operations, query, adds, deletes):
    answer = changed.get(f"/diff?{query}")

    decoded = operations(answer.content)
    net = effect(decoded)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/x-jelly-rdf-patch"
    assert (names(net.adds), names(net.deletes)) == (adds, deletes)
    assert decoded.count(TransactionStart()) == 1
    assert decoded.count(Punctuation()) == 1


@pytest.mark.parametrize(
    ("form", "headers", "expected"),
    [
        ("format=rdf-patch", {}, "application/rdf-patch"),
        ("", {"Accept": "text/rdf-patch"}, "application/rdf-patch"),
        ("stream-type=frame", {}, "application/x-jelly-rdf-patch"),
        ("stream-type=flat", {}, "application/x-jelly-rdf-patch"),
        ("stream-type=punctuated", {}, "application/x-jelly-rdf-patch"),
    ],
)
def test_diff_in_every_format_of_patches(changed, form, headers, expected):
    answer = changed.get(f"/diff?from=0&to=2&{form}", headers=headers)

    assert answer.headers["content-type"] == expected
    again = changed.client.put(f"{changed.path}-again")
    assert again.status_code == 201
    taken = changed.client.post(
        f"{changed.path}-again/patches", content=answer.content, headers={"Content-Type": expected}
    )
    assert (taken.status_code, taken.json()["operations"]) == (201, 5)


def test_diff_as_text_may_be_read(changed):
    text = changed.get("/diff?from=0&to=2&format=text").text

    assert text.splitlines()[0] == "TX ."
    assert text.splitlines()[-1] == "TC ."
    assert "Z ." not in text


def test_diff_between_fixed_versions_is_immutable(changed):
    fixed = changed.get("/diff?from=0&to=2")
    moving = changed.get("/diff?from=0")
    again = changed.get("/diff?from=0&to=2", headers={"If-None-Match": fixed.headers["etag"]})

    assert "immutable" in fixed.headers["cache-control"]
    assert moving.headers["cache-control"] == "no-cache"
    assert (again.status_code, again.content) == (304, b"")
    tags = {changed.get(f"/diff?{query}").headers["etag"] for query in ("from=0&to=2", "from=2&to=0", "from=1&to=2")}
    assert len(tags) == 3


def test_diff_is_compressed_where_it_may_be(changed):
    with changed.client.stream("GET", f"{changed.path}/diff?from=0", headers={"Accept-Encoding": "gzip"}) as answer:
        raw = b"".join(answer.iter_raw())

    assert gzip.decompress(raw) == changed.get("/diff?from=0").content


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("from=x", 400),
        ("from=-1", 400),
        ("from=0&to=-1", 400),
        ("from=0&stream-type=round", 400),
        ("from=0&format=turtle", 406),
        ("from=0&format=json", 406),
        ("from=5", 404),
        ("from=0&to=5", 404),
        (f"from={(1 << 63) - 1}", 404),
    ],
)
def test_diffs_that_are_none_are_refused(changed, query, status):
    assert changed.get(f"/diff?{query}").status_code == status


def test_diff_of_a_large_range_is_worked_out_on_disk(service, new_log, operations):
    log = new_log(service)
    lines = 120_000
    text = b"".join(b'A <http://example.org/%d> <http://example.org/p> "%d" .\n' % (i, i) for i in range(lines))
    log.append_text(b"TX .\n" + text + b"TC .\n")
    before = service.resident_bytes

    forth = operations(log.get("/diff?from=0&to=1", timeout=60).content)
    back = operations(log.get("/diff?from=1&to=0", timeout=60).content)

    assert len({operation for operation in forth if isinstance(operation, Add)}) == lines
    assert len(back) == len(forth)
    assert service.resident_bytes - before < 150 << 20


# Taking back


def test_revert_takes_a_range_back(changed, operations):
    head = changed.get().headers["etag"]

    answer = changed.client.post(f"{changed.path}/revert", json={"from": 1, "to": 2, "headers": {"who": "Eve"}})

    document = answer.json()
    assert (answer.status_code, document["version"]) == (201, 5)
    assert answer.headers["location"] == f"{changed.path}/patches/5"
    assert answer.headers["etag"] == f'"{document["id"]}"' != head
    assert present(changed, operations) == "abd"
    said = changed.get("/patches/5?format=json").json()["headers"]
    assert said == {"who": '"Eve"', "why": '"takes back version 2"'}


@pytest.mark.parametrize(
    ("document", "left"), [({"version": 2}, "abd"), ({"from": 2}, "bc"), ({"from": 0}, ""), ({"version": 4}, "bcd")]
)
def test_ranges_that_are_taken_back(changed, operations, document, left):
    answer = changed.client.post(f"{changed.path}/revert", json=document)

    assert answer.status_code == 201
    assert present(changed, operations) == left


def test_revert_against_a_later_patch_is_a_conflict(changed):
    changed.append_text(change("a"))
    changed.append_text(change("", "a"))

    refused = changed.client.post(f"{changed.path}/revert", json={"version": 2})

    assert refused.status_code == 409
    assert refused.json()["type"].endswith("revert-conflict")
    assert '"a"' in refused.json()["detail"]
    assert changed.get().json()["head"]["version"] == 6


def test_revert_has_a_precondition(changed):
    stale = {"If-Match": f'"{changed.get("/patches/1?format=json").json()["id"]}"'}

    refused = changed.client.post(f"{changed.path}/revert", json={"version": 4}, headers=stale)
    done = changed.client.post(
        f"{changed.path}/revert", json={"version": 4}, headers={"If-Match": changed.get().headers["etag"]}
    )

    assert (refused.status_code, done.status_code) == (412, 201)
    assert refused.json()["head"]["version"] == 4


def test_precondition_of_a_revert_goes_before_its_conflicts(changed):
    """Who works on what was there before has to look again, whatever it is that stands against it now."""
    stale = {"If-Match": changed.get().headers["etag"]}
    changed.append_text(change("a"))
    changed.append_text(change("", "a"))

    refused = changed.client.post(f"{changed.path}/revert", json={"version": 2}, headers=stale)

    assert (refused.status_code, refused.json()["head"]["version"]) == (412, 6)


def test_revert_may_be_retried(changed, patches):
    document = {"from": 1, "to": 3, "id": patches.C}

    first = changed.client.post(f"{changed.path}/revert", json=document)
    again = changed.client.post(f"{changed.path}/revert", json=document)
    other = changed.client.post(f"{changed.path}/revert", json={**document, "from": 0})

    assert [answer.status_code for answer in (first, again, other)] == [201, 200, 409]
    assert again.json() == first.json()


@pytest.mark.parametrize(
    ("document", "status"),
    [
        ({}, 400),
        ({"to": 1}, 400),
        ({"from": 1, "version": 1}, 400),
        ({"version": 1, "to": 2}, 400),
        ({"version": 0}, 400),
        ({"from": 1, "to": 1}, 400),
        ({"from": 2, "to": 1}, 400),
        ({"from": "1"}, 400),
        ({"version": 1, "id": "x"}, 400),
        ({"version": 1, "headers": {"id": "x"}}, 400),
        ({"version": 4, "headers": {"": "x"}}, 201),
        ({"version": 1, "more": 1}, 400),
        ({"from": 4}, 400),
        ({"from": 9}, 400),
        ({"version": 9}, 404),
        ({"from": 0, "to": 9}, 404),
    ],
    ids=str,
)
def test_reverts_that_are_none_are_refused(changed, document, status):
    before = changed.get().json()["head"]["version"]

    answer = changed.client.post(f"{changed.path}/revert", json=document)

    assert answer.status_code == status, answer.text
    assert changed.get().json()["head"]["version"] == before + (status == 201)


def test_revert_among_writers_is_done_once_and_whole(log, operations):
    log.append_text(change("ab"))

    def write(name):
        for _ in range(5):
            assert log.append_text(change(name)).status_code == 201

    writers = [threading.Thread(target=write, args=(name,)) for name in "xyz"]
    for writer in writers:
        writer.start()
    answer = log.client.post(f"{log.path}/revert", json={"version": 1})
    for writer in writers:
        writer.join()

    assert answer.status_code in (201, 412)
    assert present(log, operations) == ("xyz" if answer.status_code == 201 else "abxyz")


def test_changes_that_were_truncated_away_are_gone(changed, operations):
    changed.client.post(f"{changed.path}/snapshots", json={"version": 2}, params={"wait": "60"})
    assert changed.client.post(f"{changed.path}/truncate", json={"before": 3}).status_code == 200

    gone = [changed.get("/diff?from=1&to=3"), changed.client.post(f"{changed.path}/revert", json={"version": 1})]
    back = changed.get("/diff?from=3&to=2")
    history = changed.get("/history", params={"subject": "http://example.org/b"}).json()
    found = history["quads"]

    for answer in gone:
        assert answer.status_code == 410
        assert answer.headers["link"] == f'<{changed.path}/snapshots/latest>; rel="alternate"'
    assert names(effect(operations(back.content)).deletes) == "d"
    assert [(quad["version"], quad["from_snapshot"]) for quad in found] == [(2, True)]
    assert history["known_after"] == 2
    page = changed.client.get(f"/ui{changed.path}/history", params={"subject": "http://example.org/b"}).text
    assert "2 or before" in page
    assert "up to version 2 is not known" in page
    compared = changed.client.get(f"/ui{changed.path}/compare", params={"from": 1, "to": 3})
    assert compared.status_code == 410


# Who changed what


def test_history_says_by_which_patch_each_quad_came(changed):
    found = changed.get("/history", params={"subject": "http://example.org/b"}).json()["quads"]

    patch = changed.get("/patches/1?format=json").json()
    assert found == [
        {
            "subject": S.format("b"),
            "predicate": P,
            "object": '"b"',
            "graph": "",
            "version": 1,
            "id": patch["id"],
            "time": patch["time"],
            "headers": {"who": '"Ada"'},
            "from_snapshot": False,
        }
    ]


@pytest.mark.parametrize(
    ("parameters", "count"),
    [
        ({"subject": "http://example.org/c"}, 1),
        ({"subject": "<http://example.org/c>", "predicate": "http://example.org/p"}, 1),
        ({"subject": "http://example.org/c", "predicate": "http://example.org/q"}, 0),
        ({"subject": "http://example.org/c", "graph": ""}, 1),
        ({"subject": "http://example.org/c", "graph": "http://example.org/g"}, 0),
        ({"subject": "http://example.org/a"}, 0),
        ({"subject": "_:none"}, 0),
    ],
    ids=str,
)
def test_history_of_some_quads(changed, parameters, count):
    assert len(changed.get("/history", params=parameters).json()["quads"]) == count


@pytest.mark.parametrize("parameters", [{}, {"subject": "<a b>"}, {"subject": '"x'}, {"subject": "<<( x"}], ids=str)
def test_history_of_no_term_is_refused(changed, parameters):
    assert changed.get("/history", params=parameters).status_code == 400


@pytest.mark.parametrize("rest", ["/diff?from=0", "/diff?from=4&to=3", "/history?subject=http://example.org/a"])
def test_changes_of_no_log_are_not_found(service, rest):
    assert service.client.get(f"/logs/none{rest}").status_code == 404


def test_commands_work_on_a_service_too(changed, capfd):
    url = f"{changed.service.url}{changed.path}"

    codes = [
        main(["diff", url, "--from", "3", "--until", "2"]),
        main(["revert", url, "--version", "2", "--header", "who=Eve"]),
        main(["log", "blame", url, "--subject", "http://example.org/a"]),
    ]

    said = capfd.readouterr().out.splitlines()
    assert codes == [0, 0, 0]
    assert said[:3] == ["TX .", f'D {S.format("d")} {P} "d" .', "TC ."]
    assert "version 5" in said[3]
    assert said[4].startswith("5  ")
    assert said[4].endswith(f'"Eve"  {S.format("a")} {P} "a"')
