"""The pages under /ui: as a browser shows them, and as JSON."""

import os
import shutil
import uuid

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

from api.keys import create_key
from patchlog.log.database import Database
from patchlog.log.migration import migrate

TEXT = {"Content-Type": "application/rdf-patch"}
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


@pytest.fixture(scope="module")
def browser():
    path = shutil.which("chromium")
    if path is None:
        reason = "there is no chromium here (Debian: apt-get install chromium)"
        (pytest.fail if os.environ.get("PATCHLOG_REQUIRE_BROWSER") else pytest.skip)(reason)
    expect.set_options(timeout=60_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path,
            args=[
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                "--host-resolver-rules=MAP patchlog.lan 127.0.0.1",
            ],
        )
        yield browser
        browser.close()


@pytest.fixture(params=["light", "dark"])
def page(browser, request):
    context = browser.new_context(color_scheme=request.param)
    page = context.new_page()
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda message: page.problems.append(message.text) if message.type == "error" else None)
    yield page
    context.close()


@pytest.fixture
def log(sqlite_service):
    name = f"ui-{uuid.uuid4().hex[:8]}"
    client = sqlite_service.client
    client.put(f"/logs/{name}").raise_for_status()
    escaped = HOSTILE.replace('"', '\\"')
    for text in (
        (
            'H who "Ada" .\nTX .\nPA "ex" <http://example.org/> .\n'
            'A <http://example.org/ada> <http://xmlns.com/foaf/0.1/name> "Ada"@en <http://example.org/g> .\n'
            f'A <http://example.org/bob> <http://example.org/says> "{escaped}" .\nTC .\n'
        ),
        (
            'TX .\nD <http://example.org/ada> <http://xmlns.com/foaf/0.1/name> "Ada"@en <http://example.org/g> .\n'
            'A <http://example.org/ada> <http://xmlns.com/foaf/0.1/name> "Ada Lovelace"@en <http://example.org/g> .\n'
            "TC .\n"
        ),
        'TX .\nA <http://example.org/ada> <http://example.org/never> "x" .\nTA .\n',
    ):
        client.post(f"/logs/{name}/patches", content=text, headers=TEXT).raise_for_status()
    client.post(f"/logs/{name}/snapshots?wait=60").raise_for_status()
    client.put(f"/logs/{name}/consumers/spark", json={"version": 1}).raise_for_status()
    return name


def open_page(page, service, path, root="/ui"):
    page.goto(f"{service.url}{root}{path}")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.problems == []
    return page


def test_browser_comes_from_the_root_to_the_pages(sqlite_service):
    there = sqlite_service.client.get("/", headers={"Accept": "text/html,*/*;q=0.8"})

    assert (there.status_code, there.headers["Location"]) == (307, "/ui")
    assert sqlite_service.client.get("/").json()["status"] == 404


def test_logs_are_listed_with_the_lag_of_their_consumers(page, sqlite_service, log):
    open_page(page, sqlite_service, "?after=ui-")  # other tests have left more logs than a page holds

    row = page.get_by_role("row").filter(has_text=log)
    expect(row).to_contain_text("spark is 2 behind")
    expect(row).to_contain_text("Ada")
    page.get_by_role("link", name=log).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(log)


def test_requests_are_described_and_nothing_comes_from_elsewhere(page, sqlite_service):
    asked = []
    page.on("request", lambda request: asked.append(request.url))

    open_page(page, sqlite_service, "/docs", root="")

    requests = page.get_by_role("navigation", name="Requests").get_by_role("listitem")
    schema = sqlite_service.client.get("/openapi.json").json()
    assert requests.count() == sum(map(len, schema["paths"].values()))
    page.get_by_role("link", name="GET /logs/{log}/diff").click()
    expect(page.get_by_role("region", name="Parameters of Get a patch between two versions")).to_contain_text(
        "frame, flat, punctuated"
    )
    assert all(url.startswith(sqlite_service.url) for url in asked if not url.startswith("data:"))
    assert sqlite_service.client.get("/docs?format=json").json() == schema


def test_log_has_versions_chart_consumers_and_snapshots(page, sqlite_service, log):
    open_page(page, sqlite_service, f"/logs/{log}")

    expect(page.locator("#chart canvas")).to_be_visible()
    expect(page.get_by_role("region", name="Versions").get_by_role("rowheader")).to_have_text(["3", "2", "1"])
    expect(page.get_by_role("rowheader", name="spark")).to_be_visible()
    expect(page.get_by_role("link", name="Jelly-RDF")).to_be_visible()


def test_patch_is_shown_as_a_diff_by_graph(page, sqlite_service, log):
    open_page(page, sqlite_service, f"/logs/{log}/patches/2")

    expect(page.locator("tr.deleted")).to_contain_text("foaf:name")
    expect(page.locator("tr.added")).to_contain_text('"Ada Lovelace"@en')
    expect(page.get_by_text("Chain hash: SHA-256 of both")).to_be_visible()
    page.get_by_role("link", name="Version 1").click()
    expect(page.get_by_role("term").filter(has_text="who")).to_be_visible()
    expect(page.get_by_role("link", name="ex:bob")).to_be_visible()


def test_aborted_rows_are_marked(page, sqlite_service, log):
    open_page(page, sqlite_service, f"/logs/{log}/patches/3")

    expect(page.locator("tr.aborted")).to_have_count(1)


def test_hostile_text_is_only_text(page, sqlite_service, log):
    open_page(page, sqlite_service, f"/logs/{log}/patches/1")

    expect(page.get_by_role("cell").filter(has_text="<img src=x")).to_be_visible()
    page.get_by_text("As RDF Patch text").click()
    expect(page.get_by_role("region", name="RDF Patch text")).to_contain_text("<img src=x")
    assert page.locator("main img").count() == 0
    assert "owned" not in page.title()


def test_versions_are_compared(page, sqlite_service, log):
    open_page(page, sqlite_service, f"/logs/{log}/compare")

    page.get_by_label("From").fill("1")
    page.get_by_label("to", exact=True).fill("2")
    page.get_by_role("button", name="Compare").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("From version 1 to 2")
    expect(page.locator("tr.added")).to_contain_text("Ada Lovelace")
    assert Axe().run(page).violations_count == 0


def test_history_of_a_resource_is_found(page, sqlite_service, log):
    open_page(page, sqlite_service, f"/logs/{log}/history")

    page.get_by_label("Subject").fill("http://example.org/ada")
    page.get_by_role("button", name="Who changed it?").click()

    there = page.get_by_role("region", name="What is there")
    expect(there.get_by_role("row")).to_have_count(2)
    expect(there.get_by_role("link", name="2")).to_be_visible()
    changes = page.get_by_role("region", name="What has come and gone").get_by_role("row")
    expect(changes).to_contain_text(["Added", '"Ada Lovelace"@en', '"Ada"@en', '"Ada"@en'])
    expect(page.locator("tr.deleted")).to_have_count(1)
    assert Axe().run(page).violations_count == 0


def test_what_was_deleted_has_a_history(sqlite_log):
    for sign in "AD":
        sqlite_log.append_text(f'TX .\n{sign} <http://example.org/eve> <http://example.org/p> "x" .\nTC .\n')

    found = sqlite_log.client.get(
        f"/ui{sqlite_log.path}/history", params={"subject": "http://example.org/eve", "format": "json"}
    ).json()

    assert found["quads"] == []
    assert [(one["sign"], one["version"]) for one in found["changes"]] == [("-", 2), ("+", 1)]


@pytest.mark.parametrize("count", [996, 997, 998, 999, 1000, 1500])
def test_a_page_says_where_it_shows_the_beginning_only(sqlite_log, count):
    sqlite_log.append_text("TX .\n" + "".join(f"A <urn:{i}> <urn:p> <urn:o> .\n" for i in range(count)) + "TC .\n")

    shown = sqlite_log.client.get(f"/ui{sqlite_log.path}/patches/1?format=json").json()

    rows = sum(len(graph["rows"]) for graph in shown["graphs"])
    assert shown["has_more"] == (rows < count or not shown["text"].endswith("TC .\n"))
    assert rows >= min(count, 990)


def test_long_terms_do_not_make_a_long_page(sqlite_log):
    row = f'A <urn:s> <urn:p> "%d{"x" * 200_000}" .\n'
    sqlite_log.append_text("TX .\n" + "".join(row % i for i in range(50)) + "TC .\n")

    answer = sqlite_log.client.get(f"/ui{sqlite_log.path}/patches/1", headers={"Accept": "text/html"})

    assert len(answer.content) < 4_000_000
    assert "Only the beginning is shown" in answer.text


def test_prefixes_are_those_that_the_log_began_with(sqlite_log):
    sqlite_log.append_text('TX .\nPA "ex" <http://example.org/> .\nA <urn:s> <urn:p> <urn:o> .\nTC .\n')
    sqlite_log.append_text("TX .\nA <http://example.org/ada> <urn:p> <urn:o> .\nTC .\n")

    def subject():
        shown = sqlite_log.client.get(f"/ui{sqlite_log.path}/patches/2?format=json").json()
        return shown["graphs"][0]["rows"][0]["subject"]["short"]

    assert subject() == "ex:ada"
    sqlite_log.client.post(f"{sqlite_log.path}/snapshots?wait=60").raise_for_status()
    sqlite_log.client.post(f"{sqlite_log.path}/truncate", json={"before": 2}).raise_for_status()
    assert subject() == "ex:ada"


def test_logs_come_a_page_at_a_time(start):
    service = start()
    for number in range(101):
        service.client.put(f"/logs/log-{number:03}").raise_for_status()

    first = service.client.get("/ui?format=json").json()
    second = service.client.get("/ui", params={"format": "json", "after": first["next"]}).json()

    assert [len(first["logs"]), first["next"]] == [100, "log-099"]
    assert ([log["name"] for log in second["logs"]], second["next"]) == (["log-100"], None)
    assert service.client.get("/ui?after=%00").status_code == 400


def test_pages_fit_a_phone(page, sqlite_service, log):
    page.set_viewport_size({"width": 360, "height": 740})
    for path in ("", f"/logs/{log}", f"/logs/{log}/patches/1", f"/logs/{log}/compare", f"/logs/{log}/tail", "/keys"):
        page.goto(f"{sqlite_service.url}/ui{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path


def test_live_tail_shows_patches_pauses_and_filters(page, sqlite_service, log):
    open_page(page, sqlite_service, f"/logs/{log}/tail")
    expect(page.get_by_role("status")).to_have_text("Live")

    append(sqlite_service, log, "first")
    expect(page.get_by_role("log")).to_contain_text("first")
    page.get_by_role("button", name="Pause").click()
    append(sqlite_service, log, "second")
    expect(page.get_by_role("status")).to_contain_text("are waiting")
    expect(page.get_by_role("log")).not_to_contain_text("second")
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_role("log")).to_contain_text("second")
    page.get_by_label("Only lines with").fill("second")
    expect(page.get_by_text("first")).to_be_hidden()


def append(service, log, word):
    text = f'TX .\nA <http://example.org/s> <http://example.org/p> "{word}" .\nTC .\n'
    service.client.post(f"/logs/{log}/patches", content=text, headers=TEXT).raise_for_status()


def test_older_versions_are_loaded_into_the_page(page, sqlite_service, log):
    for number in range(60):
        append(sqlite_service, log, str(number))
    open_page(page, sqlite_service, f"/logs/{log}")

    page.get_by_role("link", name="Older versions").click()

    expect(page.get_by_role("region", name="Versions").get_by_role("rowheader")).to_have_count(63)


def test_keys_page_says_that_none_are_asked_for(page, sqlite_service):
    open_page(page, sqlite_service, "/keys")

    expect(page.get_by_text("does not ask for keys")).to_be_visible()


def test_what_is_not_there_is_a_page_that_says_so(page, sqlite_service):
    page.goto(f"{sqlite_service.url}/ui/logs/no-such-log")

    expect(page.get_by_role("alert")).to_contain_text("no-such-log")


def test_pages_are_documents_for_programs(sqlite_service, log):
    client = sqlite_service.client
    for path in ("", f"/logs/{log}", f"/logs/{log}/patches/1", f"/logs/{log}/compare", f"/logs/{log}/tail", "/keys"):
        by_accept = client.get(f"/ui{path}", headers={"Accept": "application/json"})
        by_parameter = client.get(f"/ui{path}", params={"format": "json"})
        assert by_accept.headers["Content-Type"] == "application/json"
        assert by_accept.json().keys() == by_parameter.json().keys()
    missing = client.get("/ui/logs/no-such-log", headers={"Accept": "application/json"})
    assert (missing.status_code, missing.headers["Content-Type"]) == (404, "application/problem+json")


def test_policy_lets_a_page_load_from_its_service_only(sqlite_service):
    policy = sqlite_service.client.get("/ui").headers["Content-Security-Policy"]

    assert policy.startswith("default-src 'self'")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


def test_nothing_but_assets_is_served_as_one(sqlite_service):
    assert sqlite_service.client.get("/ui/static/app.js").status_code == 200
    assert sqlite_service.client.get("/ui/static/README.md").status_code == 404
    assert sqlite_service.client.get("/ui/static/..%2froutes.py").status_code == 404


@pytest.fixture
def guarded(start, tmp_path):
    """A service that asks for keys, and one."""
    url = f"sqlite:///{tmp_path}/keys.db"
    database = Database(url)
    migrate(database)
    _, key = create_key(database, ["log:*:admin"], name="mine")
    database.close()
    return start(url, keys="required"), key


@pytest.mark.parametrize("host", ["127.0.0.1", "patchlog.lan"])
def test_key_is_taken_by_plain_http_from_another_machine(browser, guarded, host):
    """Browsers say less there: of a page that wants no referrer they sent `Origin: null`, which was refused."""
    service, key = guarded
    context = browser.new_context()
    page = context.new_page()

    page.goto(f"http://{host}:{service.port}/ui/keys")
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Look at the logs").click()
    page.wait_for_url("**/ui")
    page.goto(f"http://{host}:{service.port}/ui/keys")

    expect(page.get_by_role("cell", name="mine")).to_be_visible()
    page.get_by_role("button", name="Forget the key").click()
    expect(page.get_by_label("API key")).to_be_visible()
    context.close()


def test_key_is_kept_by_the_browser(browser, guarded):
    service, key = guarded
    service.client.put("/logs/people", headers={"Authorization": f"Bearer {key}"}).raise_for_status()
    context = browser.new_context()
    page = context.new_page()

    page.goto(f"{service.url}/ui/logs/people")
    page.get_by_label("API key").fill("pl_wrong")
    page.get_by_role("button").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Look at the logs").click()

    expect(page.get_by_role("link", name="people")).to_be_visible()
    page.goto(f"{service.url}/ui/logs/people/tail")
    expect(page.get_by_role("status")).to_have_text("Live")
    page.goto(f"{service.url}/ui/keys")
    expect(page.get_by_role("cell", name="mine")).to_be_visible()
    cookie = context.cookies()[0]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    # A cookie looks, and does not write: other sites cannot use it to change anything.
    posted = httpx.put(f"{service.url}/logs/other", cookies={"patchlog_key": key})
    assert posted.status_code == 401
    over_tls = httpx.post(f"{service.url}/ui/login", data={"key": key}, headers={"X-Forwarded-Proto": "https"})
    assert (cookie["secure"], "; Secure" in over_tls.headers["Set-Cookie"]) == (False, True)
    page.get_by_role("button", name="Forget the key").click()
    expect(page.get_by_label("API key")).to_be_visible()
    context.close()
