"""Checks the licenses and sources of all dependencies by deny.toml, with nothing but cargo and Python 3.8.

What tools/deny.sh runs where cargo-deny is not installed.
"""

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
    for problem in problems:
        print(f"deny: {problem}", file=sys.stderr)
    sys.exit(bool(problems))


main()
