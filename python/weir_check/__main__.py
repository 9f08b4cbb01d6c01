"""python -m weir_check X.weir [--json]

Exit status: 0 all claims hold, 1 a claim fails, 2 the file is not an artifact.
"""

import argparse
import json
import sys

from .claims import check_plan
from .read import Unreadable, read_artifact


def check(path):
    """Returns a row for each claim of each plan; raises Unreadable."""
    manifest, plans = read_artifact(path)
    return [dict(entry=entry["name"], target=profile["target"], claim=claim, holds=holds,
                 detail=detail)
            for entry, profile, plan in plans
            for claim, holds, detail in check_plan(manifest, entry, profile, plan)]


def print_table(rows):
    table = [("entry", "target", "claim", "", "detail")]
    table += [(row["entry"], row["target"], row["claim"], "holds" if row["holds"] else "FAILS",
               row["detail"]) for row in rows]
    widths = [max(map(len, column)) for column in list(zip(*table))[:4]]
    for row in table:
        print(*(cell.ljust(width) for cell, width in zip(row, widths)), row[4], sep="  ")


def main():
    parser = argparse.ArgumentParser(prog="python -m weir_check",
                                     description="Proves the claims of an artifact's plans that need no code")
    parser.add_argument("artifact", metavar="X.weir")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    try:
        rows = check(options.artifact)
    except Unreadable as error:
        print(f"weir_check: {options.artifact} is not an artifact: {error}", file=sys.stderr)
        return 2
    holds = all(row["holds"] for row in rows)
    if options.json:
        print(json.dumps({"holds": holds, "claims": rows}, indent=2))
    else:
        print_table(rows)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
