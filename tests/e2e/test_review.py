"""The review desk as a person uses it; it is measured by plain_app/bench/review.py."""

import re
from collections.abc import Iterator
from itertools import count
from uuid import uuid4

import pytest
from app_server import Server, serving
from desk_driver import (
    LONG,
    WATCH,
    address,
    answered,
    answers,
    desk,
    doubled,
    expect_saved,
    make_run,
    press,
    shown_item,
    stored,
)
from native_widgets import choose
from playwright.sync_api import expect

from core.data.demo import load_demo
from plain_app.server import tokens

pytestmark = pytest.mark.e2e
SIZES = count(600)  # data of another size is other data


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[tuple[Server, str]]:
    """One server for all, as each test is another annotator; and the run under review."""
    folder = tmp_path_factory.mktemp("review") / "space"
    run_id = make_run(folder, load_demo())  # large enough that nobody runs out of questions
    with serving(folder) as server:
        yield server, run_id


@pytest.fixture
def review(served, open_page):
    """Open the desk; return its server, its page and who sits there: each time somebody new, as
    what was answered when a test failed is not asked again."""
    server, run_id = served
    if server.process.poll() is not None:  # a test that kills it did not come to its end
        server.start()
    who = f"ann {uuid4().hex}"
    page = open_page(address(server, run_id, who))
    desk(page)
    return server, page, who


@pytest.fixture
def review_alone(served, open_page):
    """The same on data of its own: nobody has answered anything."""
    server, _ = served
    run_id, who = make_run(server.workspace, load_demo(n_instances=next(SIZES))), uuid4().hex
    page = open_page(address(server, run_id, who))
    desk(page)
    return server, page, who


def test_a_burst_of_keys_is_stored_whole_and_once(review):
    server, page, who = review
    page.evaluate(WATCH)
    for _ in range(30):  # later one comes back blind, and has nothing to accept
        page.keyboard.press("a")
        page.wait_for_timeout(50)
    expect_saved(page)
    rows = stored(server.workspace, who)
    assert answered(page) == answers(rows) == 30
    assert doubled(rows) == []
    assert len(page.evaluate("told.painted")) == 30  # how soon is measured by the bench


def test_without_network_answers_are_kept_shown_as_unsaved_and_sent_later(review):
    server, page, who = review
    press(page, "a")
    expect_saved(page)
    page.context.set_offline(True)
    for _ in range(4):
        press(page, "a")
        page.wait_for_timeout(100)
    status = page.locator('[data-part="status"][data-state="unsaved"]')
    expect(status).to_be_visible(timeout=LONG)
    unsaved = int(status.get_attribute("data-waiting"))
    assert unsaved >= 4  # an answer decides all cells in question
    expect(status).to_contain_text(f"{unsaved} not saved")
    assert answers(stored(server.workspace, who)) == 1
    page.context.set_offline(False)
    expect_saved(page)
    rows = stored(server.workspace, who)
    assert answers(rows) == 5
    assert doubled(rows) == []


def test_answers_survive_a_closed_page(review):
    server, page, who = review
    page.context.set_offline(True)
    press(page, "a", "a")
    expect(page.locator('[data-part="status"]')).to_contain_text("not saved", timeout=LONG)
    page.context.set_offline(False)
    page.reload()
    desk(page)
    expect(page.locator('[data-part="status"][data-waiting="0"]')).to_be_attached(timeout=LONG)
    assert answers(stored(server.workspace, who)) == 2


def test_answers_that_outlived_their_token_are_saved_when_the_page_is_back(
    review, served, monkeypatch
):
    server, page, who = review
    monkeypatch.setenv("PLAIN_WORKSPACE", str(server.workspace))
    monkeypatch.setattr(tokens, "time", lambda: 0.0)
    fingerprint = tokens.workspace().runs.get(served[1]).fingerprint
    expired = tokens.issue(tokens.Claims(fingerprint, served[1], who))
    page.route("**/api/decisions", lambda route: route.abort())
    press(page, "a", "a")
    expect(page.locator('[data-part="status"]')).to_contain_text("not saved", timeout=LONG)
    n_kept = page.evaluate(
        """(token) => {
          const slots = Object.keys(localStorage).filter((one) => one.startsWith("plain.answer."));
          for (const slot of slots) {
            const kept = JSON.parse(localStorage.getItem(slot));
            localStorage.setItem(slot, JSON.stringify({ ...kept, token }));
          }
          return slots.length;
        }""",
        expired,
    )
    assert n_kept
    page.goto(server.url)
    page.unroute("**/api/decisions")
    page.goto(address(server, served[1], who))
    desk(page)
    expect_saved(page)
    assert answers(stored(server.workspace, who)) == 2
    assert not [one for one in page.evaluate("Object.keys(localStorage)") if "answer" in one]


def test_a_page_whose_token_is_refused_keeps_its_answers_until_it_is_reloaded(review):
    server, page, who = review
    page.context.clear_cookies()  # the token is bound to the browser's cookie
    press(page, "a")
    status = page.locator('[data-part="status"][data-state="unsaved"]')
    expect(status).to_contain_text("Reload the page", timeout=LONG)
    assert stored(server.workspace, who) == []
    page.reload()
    expect_saved(page)
    assert answers(stored(server.workspace, who)) == 1


def test_a_request_that_is_too_large_is_sent_in_parts(review):
    server, page, who = review
    sizes = []

    def limited(route):
        sizes.append(len(route.request.post_data_json["decisions"]))
        route.fulfill(status=413) if sizes[-1] > 2 else route.continue_()

    page.context.set_offline(True)
    press(page, "a", "a", "a", "a")
    expect(page.locator('[data-part="status"]')).to_contain_text("not saved", timeout=LONG)
    page.route("**/api/decisions", limited)
    page.context.set_offline(False)
    expect_saved(page)
    rows = stored(server.workspace, who)
    assert answers(rows) == 4
    assert doubled(rows) == []
    assert max(sizes) > 2  # it was refused at first


def test_an_answer_that_cannot_be_sent_is_set_aside_and_the_others_get_through(review):
    server, page, who = review
    asked = []

    def refused(route):
        sent = [one["instance_id"] for one in route.request.post_data_json["decisions"]]
        asked.extend(sent)
        if asked[0] in sent:
            route.fulfill(status=422, content_type="application/json", body='{"error": "odd"}')
        else:
            route.continue_()

    page.route("**/api/decisions", refused)
    press(page, "x", "a", "a")
    told = page.locator('[data-part="aside"]')
    expect(told).to_contain_text("odd", timeout=LONG)
    expect(told).to_contain_text(asked[0])
    status = page.locator('[data-part="status"][data-state="refused"][data-waiting="0"]')
    expect(status).to_be_visible(timeout=LONG)
    assert answers(stored(server.workspace, who)) == 2
    page.unroute("**/api/decisions")
    told.get_by_role("button", name="Send again").click()
    expect_saved(page)
    expect(told).to_be_hidden()
    assert answers(stored(server.workspace, who)) == 3


def test_a_desk_without_an_answer_does_not_ask_at_every_key_press(review):
    _, page, _ = review
    asked = []
    page.route("**/api/questions", lambda route: (asked.append(1), route.fulfill(status=503)))
    for _ in range(25):
        press(page, "a")
        page.wait_for_timeout(20)
    assert answered(page) == 25
    assert 1 <= len(asked) <= 5  # few questions are left from the 15th on: once for each without


def test_a_server_killed_between_key_and_answer_loses_nothing(review):
    server, page, who = review
    for round_ in range(1, 4):
        press(page, "a", "a")
        server.kill()
        state = page.locator('[data-part="status"]').get_attribute("data-state")
        called_saved = answered(page) if state == "saved" else 2 * (round_ - 1)
        assert answers(stored(server.workspace, who)) >= called_saved
        server.start()
        expect_saved(page)
        rows = stored(server.workspace, who)
        assert answers(rows) == answered(page) == 2 * round_
        assert doubled(rows) == []


def test_three_people_at_once_never_get_the_same_instance(served, browser):
    server, run_id = served
    pages = [browser.new_context().new_page() for _ in range(3)]
    people = [f"{name} {uuid4().hex[:6]}" for name in ("bob", "cem", "dia")]
    for page, name in zip(pages, people, strict=True):
        page.goto(address(server, run_id, name))
        desk(page)
    for _ in range(12):
        for page in pages:
            press(page, "a")
    for page in pages:
        expect_saved(page)
        page.context.close()
    rows = stored(server.workspace, *people)
    given = {(one.instance_id, one.annotator) for one in rows}
    assert answers(rows) == 36
    assert len(given) == len({instance for instance, _ in given}) == 36


def test_every_key_does_what_it_says(review):
    server, page, who = review
    first = shown_item(page)
    verdict = page.locator('[data-part="rows"] .row').first
    before = verdict.get_attribute("data-verdict")
    press(page, "1")
    changed = verdict.get_attribute("data-verdict")
    assert {before, changed} == {"keep", "reject"}
    press(page, "m")
    expect(verdict).to_have_attribute("data-verdict", "unsure")
    press(page, "ArrowRight")
    assert shown_item(page) != first
    press(page, "ArrowLeft")
    assert shown_item(page) == first
    press(page, "a")
    expect_saved(page)
    assert "unsure" in {one.verdict for one in stored(server.workspace, who)}
    press(page, "u")
    assert shown_item(page) == first
    expect_saved(page)
    rows = stored(server.workspace, who)
    assert len(rows) % 2 == 0
    assert [one.verdict for one in rows].count("undo") == len(rows) // 2
    press(page, "Space")
    assert shown_item(page) != first
    press(page, "?")
    expect(page.locator('[data-part="panel"]')).to_contain_text("Reject all")
    press(page, "Escape", "p")
    expect(page.locator('[data-part="panel"]')).to_contain_text("would move", timeout=LONG)
    assert answers(stored(server.workspace, who)) == 1


def test_keys_are_the_persons_own_and_not_those_of_fields(review):
    server, page, who = review
    press(page, "?")
    panel = page.locator('[data-part="panel"]')
    panel.get_by_role("button", name="change").first.click()
    press(page, "r")
    expect(page.locator('[data-part="last"]')).to_contain_text("not free")
    panel.get_by_role("button", name="change").first.click()
    press(page, "y")
    press(page, "Escape", "a")
    assert answered(page) == 0
    press(page, "y")
    assert answered(page) == 1
    page.reload()
    desk(page)
    page.get_by_role("textbox", name="Annotator").click()
    press(page, "y", "Backspace", "Escape")  # a name that stays would be another person's desk
    assert answered(page) == 0
    page.locator('[data-part="name"]').click()
    page.keyboard.down("y")
    for _ in range(5):
        page.keyboard.down("y")  # held down: the browser repeats it
    page.keyboard.up("y")
    assert answered(page) == 1
    expect_saved(page)
    assert answers(stored(server.workspace, who)) == 2


def test_keys_are_the_desks_once_an_order_a_mode_or_labels_are_chosen(review_alone):
    _, page, _ = review_alone
    last = page.locator('[data-part="last"]')
    press(page, "u")
    expect(last).to_contain_text("Nothing to undo")
    press(page, "ArrowDown")
    expect(last).to_have_text("")
    choose(page, "Order", "Most likely false")
    expect(page.locator('[data-part="reason"]')).to_contain_text("likely false", timeout=LONG)
    press(page, "a")
    assert answered(page) == 1
    page.get_by_text("Same question").click()
    expect(page.locator(".tile").first).to_be_visible(timeout=LONG)
    first = shown_item(page)
    press(page, " ")  # skips, and does not press the mode again
    expect(page.locator('[data-part="desk"]')).not_to_have_attribute("data-item", first)
    press(page, "a")
    assert answered(page) == 1  # of this queue
    expect_saved(page)
    first = shown_item(page)
    labels = page.get_by_role("combobox", name="Labels", exact=True)
    labels.click()
    page.get_by_role("option").nth(1).click()
    expect(page.locator('[data-part="desk"]')).not_to_have_attribute("data-item", first)
    expect(labels).to_be_focused()  # the list stays open: another label may follow
    press(page, "Escape", "u")
    expect(last).to_contain_text("Nothing to undo")


def test_the_same_question_is_ticked_as_proposed_and_keeps_what_is_changed(review_alone):
    server, page, who = review_alone
    page.get_by_text("Same question").click()
    tiles = page.locator(".tile")
    expect(tiles.nth(5)).to_be_visible(timeout=LONG)
    count = tiles.count()
    ticked = page.locator('.tile[data-verdict="keep"]').count()
    drawn = [one.split() for one in tiles.locator(".number").all_inner_texts()]
    assert all((mark == "✓") == (told >= "0.50") for mark, told in drawn if told != "0.50")
    marks = [mark for mark, _ in drawn]
    keep, reject = marks.index("✓"), marks.index("✗")
    tiles.nth(keep).click()  # to reject
    tiles.nth(reject).click()  # to no answer
    press(page, "Enter")
    expect_saved(page)
    verdicts = [one.verdict for one in stored(server.workspace, who)]
    assert verdicts.count("keep") == ticked - 1
    assert verdicts.count("reject") == count - ticked
    assert len(verdicts) == count - 1


def test_an_audit_is_blind_until_each_answer_and_ends_after_thirty(review):
    server, page, who = review
    page.get_by_role("button", name="Audit: one minute").click()
    told = page.locator('[data-part="progress"]')
    expect(told).to_contain_text("Audit: 0 of 30", timeout=LONG)
    first = page.locator('[data-part="rows"] .row').first
    expect(first).to_have_attribute("data-verdict", "")  # no proposal
    expect(first.locator(".number")).to_have_text("·")
    name = first.locator(".label").inner_text()
    press(page, "a")
    assert answered(page) == 0  # there is nothing to accept
    press(page, "e", "p")
    expect(page.locator('[data-part="last"]')).to_contain_text("told after the answer")
    press(page, "1", "a")
    last = page.locator('[data-part="last"]')
    expect(last).to_contain_text(re.compile(rf"{name} keep .*proposal.*0\.\d\d"))
    expect_saved(page)
    (row,) = stored(server.workspace, who)
    assert (row.shown, row.sampled, row.verdict) == (False, True, "keep")
    expect(told).to_contain_text("Audit: 1 of 30", timeout=LONG)
    while answered(page) < 40 and page.locator('[data-part="desk"][data-state="asking"]').count():
        press(page, "x" if answered(page) % 2 else "1", "a")
        page.wait_for_timeout(30)
    desk(page, "done")
    expect(told).to_contain_text("Audit: 30 of 30", timeout=LONG)
    assert len(stored(server.workspace, who)) == 30
