"""Checks a bill of materials against the schema of CycloneDX, and that its parts are those of a program of Rust."""

import json
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
if error:
    sys.exit(f"bill: {error}")
bill = json.loads(text)
names = {component["name"] for component in bill["components"]}
missing = {"kube-client", "ring", "training-job", "training-job-mxnet", "musl", "rust-std"} - names
if missing:
    sys.exit(f"bill: {sorted(missing)} are missing")
linked = {reference for entry in bill["dependencies"] for reference in entry["dependsOn"]}
unknown = linked - {component["bom-ref"] for component in bill["components"]}
if unknown:
    sys.exit(f"bill: {sorted(unknown)} are no parts")
unlicensed = [c["name"] for c in bill["components"] if c["licenses"] == [{"expression": "NOASSERTION"}]]
if unlicensed:
    sys.exit(f"bill: {unlicensed} have no license")
print(f"bill: {len(names)} parts, each with a license")
