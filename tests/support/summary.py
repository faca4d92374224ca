"""Adds up Meson's test logs: one line a program, then "N passed, N failed".

LOG+SECOND stands for two runs: what failed in LOG was run again, alone, and the
second run counts. What failed first and passed then is named as unsteady.

A program's own count is taken where it prints one (doctest's and unittest's
closing lines), so that the sum is of tests and not of executables. A program
that failed counts at least one failure, whatever it printed.
"""

import argparse
import json
import re
import sys

DOCTEST = re.compile(
    r"test cases:\s*(\d+)\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed"
    r"\s*(?:\|\s*(\d+) skipped)?")
UNITTEST = re.compile(r"^Ran (\d+) tests? in ", re.M)
UNITTEST_PART = re.compile(r"(failures|errors|skipped)=(\d+)")
PASSED = {"OK", "EXPECTEDFAIL"}


def own_count(text):
    """(passed, failed, skipped) by the program's own words, or None."""
    found = DOCTEST.search(text)
    if found:
        return int(found[2]), int(found[3]), 0
    found = UNITTEST.search(text)
    if not found:
        return None
    parts = {}
    for line in text[found.end():].splitlines():
        if line.startswith(("OK", "FAILED")):
            parts = {k: int(v) for k, v in UNITTEST_PART.findall(line)}
    failed = parts.get("failures", 0) + parts.get("errors", 0)
    skipped = parts.get("skipped", 0)
    return max(int(found[1]) - failed - skipped, 0), failed, skipped


def count(entry):
    if entry["result"] == "SKIP":
        return 0, 0, 1
    ok = entry["result"] in PASSED
    text = entry.get("stdout", "") + "\n" + entry.get("stderr", "")
    counted = own_count(text) or (int(ok), 0, 0)
    passed, failed, skipped = counted
    return (passed, 0, skipped) if ok else (passed, max(failed, 1), skipped)


def entries(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as log:
            return [json.loads(line) for line in log]
    except FileNotFoundError:
        return []


def failing(path):
    """Names, as meson takes them, of what failed in a log."""
    return sorted({entry["name"].split(" / ")[-1] for entry in entries(path)
                   if count(entry)[1]})


def both_runs(path):
    first, _, second = path.partition("+")
    again = {entry["name"]: entry for entry in entries(second)} if second else {}
    for entry in entries(first):
        later = again.get(entry["name"])
        if later and count(entry)[1] and not count(later)[1]:
            print(f"unsteady: {first.split('/')[0]}: {entry['name']} failed "
                  "beside others and passed alone")
        yield later or entry


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--also-failed", type=int, default=0)
    parser.add_argument("--failing", action="store_true",
                        help="only print the names of what failed")
    parser.add_argument("logs", nargs="+")
    arguments = parser.parse_args()
    if arguments.failing:
        print("\n".join(failing(arguments.logs[0])))
        return 0
    totals = [0, arguments.also_failed, 0]
    for path in arguments.logs:
        for entry in both_runs(path):
            counted = count(entry)
            totals = [a + b for a, b in zip(totals, counted)]
            if counted[1]:
                print(f"failed: {path.split('/')[0]}: {entry['name']}: "
                      f"{entry['result']}")
    print(f"{totals[0]} passed, {totals[1]} failed"
          + (f", {totals[2]} skipped" if totals[2] else ""))
    return 1 if totals[1] or not totals[0] else 0


if __name__ == "__main__":
    sys.exit(main())
