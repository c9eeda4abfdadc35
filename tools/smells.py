#!/usr/bin/env python3
"""Counts the patterns in comments that make the code hard to read.

    tools/smells.py            compares the counts with tools/smells.txt; exit code 1 if one differs
    tools/smells.py --list     prints each place as well
    tools/smells.py --write    writes the counts to tools/smells.txt

A number in tools/smells.txt may only fall: CI fails above it, and below it until the lower number is written down.
CONTRIBUTING.md, "Comments and names", has the rules behind the patterns.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMITS = ROOT / "tools" / "smells.txt"

COMMENT = re.compile(r"^\s*(///|//!|//)(?!/)\s?(.*)$")
OPENING = re.compile(r"^(What|Whether|How|Where|Why|Which)\b")
TELL = re.compile(r"\b(tell|tells|telling|told)\b", re.IGNORECASE)
NOBODY = re.compile(r"\b(nobody|somebody)\b", re.IGNORECASE)
OF_WHICH = re.compile(r"\bof which\b", re.IGNORECASE)
ALLOW = re.compile(r"#!?\[allow\(")
ITEM = re.compile(r"^\s*(pub(\([^)]*\))? )?(const |async |unsafe )*(fn|struct|enum|trait|type|const|static|mod|macro_rules)\b")
FIELD = re.compile(r"^\s*(pub(\([^)]*\))? )?[a-z_][a-z0-9_]*: ")


def is_private(line):
    return (ITEM.match(line) or FIELD.match(line)) and not line.lstrip().startswith("pub ")


def places(path):
    """Yields the name of a smell and its line number for each place in a file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    before = ""
    in_public_enum = False
    for number, line in enumerate(lines, 1):
        # The fields of its variants are as public as the enum.
        in_public_enum = line.startswith("pub enum ") or in_public_enum and line != "}"
        comment = COMMENT.match(line)
        marker = comment.group(1) if comment else ""
        if comment:
            text = comment.group(2)
            if marker != before and OPENING.match(text):
                yield "openings", number
            if TELL.search(text):
                yield "tell", number
            if NOBODY.search(text):
                yield "nobody", number
            if OF_WHICH.search(text):
                yield "of-which", number
            follows = next((l for l in lines[number:] if not l.lstrip().startswith("#[")), "")
            is_short = marker == "///" and before != "///" and len(text.split()) <= 3
            if is_short and not in_public_enum and is_private(follows):
                yield "short-docs-of-private-items", number
        elif ALLOW.search(line):
            attribute = "".join(lines[number - 1 :]).split(")]", 1)[0]
            if "reason" not in attribute:
                yield "allow-without-reason", number
        before = marker


def count():
    found = {}
    files = subprocess.run(["git", "ls-files", "*.rs"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in files.splitlines():
        path = ROOT / name
        if path.exists():
            for smell, number in places(path):
                found.setdefault(smell, []).append(f"{name}:{number}")
    return found


def main():
    smells = ["openings", "tell", "nobody", "of-which", "short-docs-of-private-items", "allow-without-reason"]
    found = count()
    if "--list" in sys.argv:
        for smell in smells:
            for place in found.get(smell, []):
                print(f"{place}: {smell}")
    if "--write" in sys.argv:
        LIMITS.write_text("".join(f"{smell} {len(found.get(smell, []))}\n" for smell in smells))
        return 0
    limits = dict(line.split() for line in LIMITS.read_text().splitlines())
    differs = False
    for smell in smells:
        now, limit = len(found.get(smell, [])), int(limits.get(smell, 0))
        if now != limit:
            differs = True
            remedy = "rewrite the new ones (tools/smells.py --list)" if now > limit else "run tools/smells.py --write"
            print(f"smells: {smell}: {now}, and tools/smells.txt has {limit}; {remedy}", file=sys.stderr)
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
