"""The page of `weir explain --html` in a browser: it shows what the plan says, runs its own script alone, and fetches nothing."""

import html.parser
import http.server
import json
import re
import shutil
import subprocess
import threading
import zipfile

import pytest

from conftest import ROOT

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
GPT2 = ROOT / "examples/gpt2_block_train/gpt2.mlir"

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium; Debian's package is chromium")


class Texts(html.parser.HTMLParser):
    """Collects the text below each element that has an id."""

    VOID = {"meta", "link", "input", "img", "br"}

    def __init__(self, page):
        super().__init__()
        self.open, self.texts, self.tags = [], {}, []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(dict(attributes).get("id"))

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            self.open.pop()

    def handle_data(self, data):
        for name in {name for name in self.open if name}:
            self.texts[name] = f"{self.texts[name]}\n{data}" if name in self.texts else data


def dump(page, folder):
    """Returns the document as the page's script left it, and what the browser complained of."""
    done = subprocess.run(
        [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--no-first-run", f"--user-data-dir={folder / 'profile'}", "--enable-logging=stderr", "--window-size=1600,1200",
         "--virtual-time-budget=3000", "--dump-dom", f"file://{page}"],
        capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def number(text):
    return int(re.match(r"[\d,]+", text.strip()).group().replace(",", ""))


@pytest.fixture
def server():
    """A server that remembers what was asked of it."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(404)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as it:
        threading.Thread(target=it.serve_forever, daemon=True).start()
        it.asked, it.url = asked, f"http://127.0.0.1:{it.server_address[1]}/seen"
        yield it
        it.shutdown()


def rename_sources(source, copy, text):
    """Copies an artifact with `text` as the place that each dispatch comes from."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(copy, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.startswith("plan/"):
                plan = json.loads(data)
                for command in plan["commands"]:
                    if command["command"] == "dispatch":
                        command["location"] = text
                data = json.dumps(plan).encode()
            new.writestr(zipfile.ZipInfo(name), data)


def test_page_says_what_the_plan_says(run_weir, tmp_path):
    run_weir("compile", GPT2, "--train=adamw:gpt2", "--entry=gpt2.step", "-o", "a.weir")
    run_weir("explain", "a.weir", "--html=page.html")
    [plan] = json.loads(run_weir("explain", "a.weir", "--memory", "--kernels", "--donation", "--json"))["plans"]
    page, complaints = dump(tmp_path / "page.html", tmp_path)
    assert complaints == []
    texts = Texts(page).texts
    assert 'data-ready="yes"' in page and texts["title"] == "a.weir"
    summary = plan["summary"]
    for tile, key in (("dispatches", "dispatches"), ("barriers", "barriers"), ("arena", "arena_bytes"), ("pinned", "pinned_bytes"),
                      ("live", "most_live_bytes"), ("results", "result_bytes"), ("constants", "constant_bytes"),
                      ("argument-param", None)):
        assert number(texts[f"tile-{tile}"]) == (summary[key] if key else summary["argument_bytes"]["param"]), tile
    assert f"{summary['donations_accepted']} of {summary['donated']}" in texts["tile-donated"]
    assert f"{summary['most_live_bytes']:,} bytes" in texts["peak-intro"]
    # The line with the most bytes is open, and has its values.
    bytes_of = {}
    for value in plan["memory"]["peak"]:
        bytes_of[value["source"]] = bytes_of.get(value["source"], 0) + value["bytes"]
    most = max(bytes_of.values())
    assert most != min(bytes_of.values()) and f"{most:,}" in texts["peak-groups"]
    assert plan["memory"]["peak"][0]["value"] in texts["peak-groups"]
    assert plan["donation"][0]["why"] in texts["donations"]
    assert f"{summary['dispatches'] + summary['barriers']:,} commands" == texts["found"]
    assert plan["kernels"][0]["kernel"] in texts["kernel-list"]


def test_names_are_only_text(run_weir, tmp_path, server):
    run_weir("compile", ROOT / "examples/background_case1.mlir", "-o", "a.weir")
    image = f"<img src={server.url}>"
    rename_sources(tmp_path / "a.weir", tmp_path / "b.weir", f"</script>{image}<script>document.title='taken'</script>")
    run_weir("explain", "b.weir", "--html=page.html")
    page, complaints = dump(tmp_path / "page.html", tmp_path)
    seen = Texts(page)
    assert complaints == [] and server.asked == []
    assert "img" not in seen.tags and seen.tags.count("script") == 2 and "<title>b.weir" in page
    assert image in seen.texts["rows"]


def test_policy_stops_what_is_not_the_pages_own(run_weir, tmp_path, server):
    run_weir("compile", ROOT / "examples/background_case1.mlir", "-o", "a.weir")
    run_weir("explain", "a.weir", "--html=page.html")
    text = (tmp_path / "page.html").read_text()
    shell = re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.S)
    assert "http:" not in shell and "https:" not in shell and "@import" not in shell and "src=" not in shell
    foreign = f"<img src={server.url}><script>document.title = 'taken'</script></body>"
    (tmp_path / "added.html").write_text(text.replace("</body>", foreign))
    page, complaints = dump(tmp_path / "added.html", tmp_path)
    assert server.asked == [] and "taken</title>" not in page and len(complaints) >= 2
    # Without the policy both happen: the test would see them.
    open_text = re.sub(r"<meta http-equiv=[^>]*>", "", text)
    (tmp_path / "open.html").write_text(open_text.replace("</body>", foreign))
    page, _ = dump(tmp_path / "open.html", tmp_path)
    assert server.asked == ["/seen"] and "taken</title>" in page
