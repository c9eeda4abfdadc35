"""Writes the image of the programs in target/image/bin, with its bill of materials and licenses: see tools/image.sh.

All bytes follow from the programs and the commit: no clock, no user, no order of a directory.
"""

import hashlib
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import uuid

from zlib_ng import gzip_ng

NAME = "ghcr.io/training-job/training-operator"
USER = "65532:65532"
OUT = pathlib.Path("target/image")
CPUS = {"amd64": "x86_64", "arm64": "aarch64"}
LICENSE_FILES = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def encoded(value):
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def linked_packages(architectures):
    """Returns the packages that the programs contain, by ID, each with the IDs of those that it uses."""
    packages, uses = {}, {}
    for architecture in architectures:
        command = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform"]
        metadata = json.loads(output(*command, f"{CPUS[architecture]}-unknown-linux-musl"))
        packages.update((package["id"], package) for package in metadata["packages"])
        nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
        found = [key for key in nodes if packages[key]["name"] == "training-operator"]
        while found:
            key = found.pop()
            linked = [
                other["pkg"]
                for other in nodes[key]["deps"]
                if any(kind["kind"] is None for kind in other["dep_kinds"])
                and not any("proc-macro" in target["kind"] for target in packages[other["pkg"]]["targets"])
            ]
            found += [other for other in linked if other not in uses]
            uses[key] = sorted(linked)
    return {key: packages[key] for key in sorted(uses, key=lambda key: reference(packages[key]))}, uses


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def expression(package):
    """Returns the package's license as an SPDX expression; old packages write `A/B` for `A OR B`."""
    return re.sub(r"\s*/\s*", " OR ", package["license"] or "NOASSERTION")


def checksums():
    """Returns the SHA-256 of each package file of Cargo.lock, by name and version."""
    lock = pathlib.Path("Cargo.lock").read_text(encoding="utf-8")
    found = re.findall(r'name = "(.+)"\nversion = "(.+)"\nsource = .+\nchecksum = "(.+)"', lock)
    return {(name, version): checksum for name, version, checksum in found}


def bill_of_materials(version, packages, uses):
    hashes = checksums()

    def component(package, kind="library"):
        made = {
            "type": kind,
            "bom-ref": reference(package),
            "name": package["name"],
            "version": package["version"],
            "purl": reference(package),
            "licenses": [{"expression": expression(package)}],
        }
        if checksum := hashes.get((package["name"], package["version"])):
            made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        return made

    [program] = [package for package in packages.values() if package["name"] == "training-operator"]
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(program, "application")},
        "components": [component(package) for package in packages.values() if package is not program]
        + [
            {"type": "library", "bom-ref": name, "name": name, "version": number, "licenses": [{"expression": license}]}
            for name, number, license in system_parts(version)
        ],
        "dependencies": [
            {"ref": reference(package), "dependsOn": [reference(packages[other]) for other in uses[key]]}
            for key, package in packages.items()
        ],
    }
    bill["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, digest(encoded(bill))).urn
    return json.dumps(bill, indent=1).encode() + b"\n"


def system_parts(rust):
    """The parts of a program that are no packages of Cargo's: their names, versions and licenses."""
    return [("rust-std", rust, "MIT OR Apache-2.0"), ("musl", "1.2.5", "MIT")]


def licenses(packages):
    """Returns the texts of all licenses, each once, with the packages that have it."""
    texts = {}

    def add(owner, file):
        text = file.read_text(encoding="utf-8", errors="replace").strip().replace("\r\n", "\n")
        texts.setdefault(text, []).append(owner)

    without = []
    for package in packages.values():
        folder = pathlib.Path(package["manifest_path"]).parent
        owner = f"{package['name']} {package['version']} ({expression(package)})"
        files = sorted(file for file in folder.iterdir() if LICENSE_FILES.match(file.name) and file.is_file())
        if not files and package["source"] is None:
            files = [pathlib.Path("LICENSE")]
        for file in files:
            add(owner, file)
        if not files:
            without.append(owner)
    import ziglang

    add("musl", pathlib.Path(ziglang.__file__).parent / "lib/libc/musl/COPYRIGHT")
    # The same authors and licenses; not every toolchain has the files of the library itself.
    [libc] = [package for package in packages.values() if package["name"] == "libc"]
    for name in ("LICENSE-APACHE", "LICENSE-MIT"):
        add("the standard library of Rust", pathlib.Path(libc["manifest_path"]).with_name(name))
    parts = ["This image contains these packages. The texts of their licenses follow.\n"]
    if without:
        parts.append("Packages without a license text of their own:\n" + "".join(f"  {owner}\n" for owner in without))
    rule = "-" * 100
    for text, owners in sorted(texts.items(), key=lambda entry: entry[1]):
        parts.append(f"{rule}\n" + "".join(f"{owner}\n" for owner in dict.fromkeys(owners)) + f"{rule}\n\n{text}\n")
    return "\n".join(parts).encode()


def archive(files):
    """Returns a tar archive with these files, by path: bytes and a mode."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        folders = {str(parent) for path in files for parent in pathlib.PurePath(path).parents} - {"."}
        for path in sorted(folders | set(files)):
            entry = tarfile.TarInfo(path)
            if path in folders:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
            else:
                data, entry.mode = files[path]
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def compressed(data):
    return gzip_ng.compress(data, compresslevel=9, mtime=0)


class Layout:
    """The files of an OCI image layout, by path."""

    def __init__(self):
        self.files = {"oci-layout": (encoded({"imageLayoutVersion": "1.0.0"}), 0o644)}

    def add(self, media_type, data):
        name = digest(data)
        self.files["blobs/" + name.replace(":", "/")] = (data, 0o644)
        return {"mediaType": media_type, "digest": name, "size": len(data)}

    def add_json(self, media_type, value):
        return self.add(media_type, encoded(value))


def main():
    architectures = sys.argv[1:]
    metadata = json.loads(output("cargo", "metadata", "--format-version=1", "--no-deps", "--locked"))
    [program] = [package for package in metadata["packages"] if package["name"] == "training-operator"]
    version = program["version"]
    changed = output("git", "status", "--porcelain")
    created = output("git", "log", "-1", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "org.opencontainers.image.title": "training-operator",
        "org.opencontainers.image.description": program["description"],
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.revision": output("git", "rev-parse", "HEAD") + ("-changed" if changed else ""),
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.licenses": program["license"],
        "org.opencontainers.image.source": program["repository"],
        "org.opencontainers.image.documentation": program["repository"] + "/blob/main/docs/README.md",
        "org.opencontainers.image.vendor": "the training-job project",
    }
    packages, uses = linked_packages(architectures)
    texts = licenses(packages)
    bill = bill_of_materials(output("rustc", "--version").split()[1], packages, uses)

    layout, manifests = Layout(), []
    for architecture in architectures:
        data = (OUT / "bin" / architecture / "training-operator").read_bytes()
        files = {
            "training-operator": (data, 0o755),
            "licenses/training-operator.txt": (pathlib.Path("LICENSE").read_bytes(), 0o644),
            "licenses/dependencies.txt.gz": (compressed(texts), 0o644),
        }
        layer = archive(files)
        config = {
            "architecture": architecture,
            "os": "linux",
            "created": created,
            "config": {
                "User": USER,
                "Entrypoint": ["/training-operator"],
                "Cmd": ["run"],
                "ExposedPorts": {"8080/tcp": {}, "8081/tcp": {}},
                "WorkingDir": "/",
                "Labels": labels,
            },
            "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
            "history": [{"created": created, "created_by": "tools/image.sh"}],
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": layout.add_json("application/vnd.oci.image.config.v1+json", config),
            "layers": [layout.add("application/vnd.oci.image.layer.v1.tar+gzip", compressed(layer))],
            "annotations": labels,
        }
        entry = layout.add_json(manifest["mediaType"], manifest)
        manifests.append({**entry, "platform": {"architecture": architecture, "os": "linux"}})
        print(f"image: {architecture}: {len(layer) / 1e6:.1f} MB, compressed {manifest['layers'][0]['size'] / 1e6:.1f} MB")
    index = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": manifests,
        "annotations": labels,
    }
    named = layout.add_json(index["mediaType"], index)
    named["annotations"] = {
        "org.opencontainers.image.ref.name": version,
        "io.containerd.image.name": f"{NAME}:{version}",
    }
    layout.files["index.json"] = (encoded({**index, "annotations": {}, "manifests": [named]}), 0o644)

    shutil.rmtree(OUT / "oci", ignore_errors=True)
    for path, (data, _) in layout.files.items():
        file = OUT / "oci" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    (OUT / "training-operator.tar").write_bytes(archive(layout.files))
    (OUT / "licenses.txt").write_bytes(texts)
    (OUT / "sbom.cdx.json").write_bytes(bill)
    (OUT / "digest").write_text(named["digest"] + "\n", encoding="utf-8")
    print(f"image: {NAME}:{version}@{named['digest']} in {OUT}/training-operator.tar")


main()
