"""Joins page.html, page.css and page.js into one page and writes it as a C++ header: embed.py OUT.h

The page's policy allows only its own style and script, by their hashes."""

import base64
import hashlib
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parent
DATA = "@data@"


def digest(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def literal(text):
    # Compilers need not accept literals beyond 64 KiB; adjacent ones are joined.
    pieces = [text[i:i + 8000] for i in range(0, len(text), 8000)]
    assert ')weir"' not in text
    return "\n    ".join(f'R"weir({piece})weir"' for piece in pieces)


page, style, script = ((FOLDER / f"page.{kind}").read_text() for kind in ("html", "css", "js"))
policy = f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}; base-uri 'none'; form-action 'none'"
for mark, text in (("@policy@", policy), ("@style@", style), ("@script@", script)):
    assert page.count(mark) == 1, mark
    page = page.replace(mark, text)
head, tail = page.split(DATA)
pathlib.Path(sys.argv[1]).write_text(f"""// Made by embed.py of page.html, page.css and page.js.
#include <string_view>

namespace weir::tool {{
/// The page up to its data, and behind it.
inline constexpr std::string_view pageHead =
    {literal(head)};
inline constexpr std::string_view pageTail =
    {literal(tail)};
}} // namespace weir::tool
""")
