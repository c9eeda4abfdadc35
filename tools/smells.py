#!/usr/bin/env python3
"""Counts the patterns that make the code hard to read: in comments and names of tests, files and modules
that import each other in a circle, and imports of the library against the order of its modules.

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

# The modules of the library. Each may import those before it.
ORDER = ["api", "output", "job", "validate", "render", "admission", "offline", "plan"]

COMMENT = re.compile(r"^\s*(///|//!|//)(?!/)\s?(.*)$")
OPENING = re.compile(r"^(What|Whether|How|Where|Why|Which)\b")
TELL = re.compile(r"\b(tell|tells|telling|told)\b", re.IGNORECASE)
NOBODY = re.compile(r"\b(nobody|somebody)\b", re.IGNORECASE)
OF_WHICH = re.compile(r"\bof which\b", re.IGNORECASE)
TEST = re.compile(r"#\[(?:tokio::)?test\b")
TEST_NAME = re.compile(r"^\s*(?:async )?fn (\w+)\(")
# Names that do not say what is tested: without a subject, or in a circumlocution.
RIDDLE = re.compile(
    r"^(what|who|where|how|whether|why|it)_|_(nobody|somebody|whoever)_|_(told|tells?|says?|said)(_|$)"
    r"|_(is|are)_no_(?!longer)|_what_|_goes_on(_|$)|_mended(_|$)"
)
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
        elif (name := TEST_NAME.match(line)) and any(TEST.search(l) for l in lines[max(0, number - 4) : number - 1]):
            if RIDDLE.search(name.group(1)):
                yield "riddles-as-test-names", number
        elif ALLOW.search(line):
            attribute = "".join(lines[number - 1 :]).split(")]", 1)[0]
            if "reason" not in attribute:
                yield "allow-without-reason", number
        before = marker


def paths(use):
    """Yields the paths of a `use` without its braces."""
    head, brace, rest = use.partition("{")
    if not brace:
        yield re.sub(r" as .*", "", head.strip())
        return
    depth, part = 0, ""
    for c in rest[: rest.rindex("}")] + ",":
        depth += {"{": 1, "}": -1}.get(c, 0)
        if c == "," and depth == 0:
            yield from paths(head.strip() + part.strip()) if part.strip() else ()
            part = ""
        else:
            part += c


def modules(src):
    """Returns the files of a crate by the path of their module. Its root and its tests are left out."""
    found = {}
    for path in src.rglob("*.rs"):
        module = list(path.relative_to(src).with_suffix("").parts)
        if module[-1] == "mod":
            module.pop()
        if module not in (["lib"], ["main"]) and "tests" not in module:
            found[tuple(module)] = path
    return found


def imports(module, path, all_modules):
    """Yields the modules that a file imports. A parent may use its children."""
    text = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8")).split("#[cfg(test)]\nmod tests")[0]
    named = [p for use in re.findall(r"\buse\s+((?:crate|super|self)\b[^;]*);", text) for p in paths(use)]
    for name in named + re.findall(r"\b(?:crate|super)(?:::\w+)+", text):
        first, *rest = (part.strip() for part in name.split("::"))
        target = [] if first == "crate" else list(module[:-1] if first == "super" else module)
        while rest and rest[0] == "super":
            target, rest = target[:-1], rest[1:]
        target = tuple(target + rest)
        while target and target not in all_modules:
            target = target[:-1]
        if target and target != module[: len(target)]:
            yield target


def circles(graph):
    """Yields the modules that import themselves through others."""
    for module in graph:
        reached, new = set(), graph[module]
        while new:
            reached |= new
            new = set().union(*(graph[m] for m in new)) - reached
        if module in reached:
            yield module


def directions(src):
    """Yields the smells of the imports of a crate, each with a file or a module."""
    all_modules = modules(src)
    graph = {module: set(imports(module, path, all_modules)) for module, path in all_modules.items()}
    for module in circles(graph):
        yield "files-in-import-circles", all_modules[module]
    # The modules at the root of the crate, with all their files.
    top = {module[0]: set() for module in graph}
    for module, others in graph.items():
        top[module[0]] |= {other[0] for other in others} - {module[0]}
    for module in circles(top):
        yield "modules-in-import-circles", src / module
    if src == ROOT / "src":
        for module, others in top.items():
            if module not in ORDER or others - set(ORDER[: ORDER.index(module)]):
                yield "imports-against-the-order", src / module


def count():
    found = {}
    files = subprocess.run(["git", "ls-files", "*.rs"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    crates = {root for name in files.splitlines() for root in re.findall(r"^(?:.*/)?src(?=/)", name)}
    for root in sorted(crates):
        for smell, path in directions(ROOT / root):
            found.setdefault(smell, []).append(f"{path.relative_to(ROOT)}:1")
    for name in files.splitlines():
        path = ROOT / name
        if path.exists():
            for smell, number in places(path):
                found.setdefault(smell, []).append(f"{name}:{number}")
    return found


def main():
    smells = [
        "openings",
        "tell",
        "nobody",
        "of-which",
        "short-docs-of-private-items",
        "allow-without-reason",
        "riddles-as-test-names",
        "files-in-import-circles",
        "modules-in-import-circles",
        "imports-against-the-order",
    ]
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
            remedy = "mend the new ones (tools/smells.py --list)" if now > limit else "run tools/smells.py --write"
            print(f"smells: {smell}: {now}, and tools/smells.txt has {limit}; {remedy}", file=sys.stderr)
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
