"""Checks the licenses, sources and versions of all dependencies by deny.toml, with nothing but cargo and Python 3.8.

What tools/deny.sh runs where cargo-deny is not installed.
"""

import collections
import datetime
import json
import re
import subprocess
import sys

REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"


def allowed_licenses():
    """The list `allow` of deny.toml. Python 3.8 has no reader of TOML."""
    with open("deny.toml", encoding="utf-8") as file:
        found = re.search(r"^allow = \[(.*?)\]", file.read(), re.MULTILINE | re.DOTALL)
    if not found:
        sys.exit("deny: deny.toml has no list of allowed licenses")
    return set(re.findall(r'"([^"]+)"', found.group(1)))


def is_allowed(expression, allowed):
    """Whether an SPDX expression can be met with the allowed licenses."""
    # `A/B` is how old packages write `A OR B`.
    tokens = re.findall(r"[()]|[^\s()]+(?: WITH [^\s()]+)?", expression.replace("/", " OR "))
    words = {"AND": "and", "OR": "or", "(": "(", ")": ")"}
    terms = [words.get(token, str(token in allowed)) for token in tokens]
    # Nothing but and, or, parentheses, True and False.
    return eval(" ".join(terms))


def skipped():
    """The list `skip` of deny.toml: the dates until which a package may have a further version, by name and version."""
    with open("deny.toml", encoding="utf-8") as file:
        entries = re.findall(r'crate = "([^"]+)", reason = "until (\d{4}-\d\d-\d\d):', file.read())
    return {crate: datetime.date.fromisoformat(date) for crate, date in entries}


def duplicates(packages, today):
    """The problems of packages with several versions, and of exceptions that are over or without effect."""
    versions = collections.defaultdict(set)
    for package in packages:
        versions[package["name"]].add(package["version"])
    skip, used = skipped(), set()
    for name, found in sorted(versions.items()):
        others = set(found)
        for version in found:
            for crate in (f"{name}@{version.rsplit('.', 1)[0]}", f"{name}@{version.split('.')[0]}"):
                if crate in skip and len(found) > 1:
                    used.add(crate)
                    others.discard(version)
        if len(others) > 1:
            yield f"{name} has the versions {', '.join(sorted(others))}; deny.toml allows one"
    for crate, date in skip.items():
        if crate not in used:
            yield f"deny.toml skips {crate}, but there is no second version"
        elif date < today:
            yield f"the exception of deny.toml for {crate} ended on {date}; use one version, or give a new date and reason"


def main():
    command = ["cargo", "metadata", "--format-version", "1", "--all-features", "--locked"]
    packages = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["packages"]
    allowed = allowed_licenses()
    problems = []
    for package in packages:
        name = f"{package['name']} {package['version']}"
        if package["source"] not in (None, REGISTRY):
            problems.append(f"{name} comes from {package['source']}, not from crates.io")
        if not is_allowed(package["license"] or "none", allowed):
            problems.append(f"{name} has the license {package['license']}, which deny.toml does not allow")
    problems.extend(duplicates(packages, datetime.date.today()))
    for problem in problems:
        print(f"deny: {problem}", file=sys.stderr)
    sys.exit(bool(problems))


main()
