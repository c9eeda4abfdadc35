A tag is released only if all files have its version. Each edit below is undone before the next one.

  $ mkdir -p tools manifests/base manifests/helm/training-operator
  $ cp $ROOT/Cargo.toml . && cp $ROOT/tools/release.sh tools && cp $ROOT/manifests/base/deployment.yaml manifests/base
  $ printf "version: $VERSION\nappVersion: \"$VERSION\"\n" > manifests/helm/training-operator/Chart.yaml
  $ sed "s/^## \[Unreleased\]/&\n\n## [$VERSION] - 2026-01-31/; /^## \[[0-9]/,\$d" $ROOT/CHANGELOG.md > CHANGELOG.md
  $ printf '\n## [0.0.9] - 2025-01-01\n\nOld.\n' >> CHANGELOG.md
  $ check() { tools/release.sh tag ${1:-v$VERSION} 2>&1 | sed "s/${VERSION//./\\.}/VERSION/g"; }
  $ check
  $ check v9.9.9
  release: the tag is v9.9.9, but Cargo.toml has version VERSION; the tag must be vVERSION
  [1]
  $ edited() { cp $1 before; sed -i "$2" $1; cmp -s $1 before && echo "$1 is the same"; check; echo "exit code $?"; mv before $1; }
  $ edited manifests/base/deployment.yaml "s/training-operator:$VERSION/training-operator:9.9.9/"
  release: manifests/base/deployment.yaml names the image of 9.9.9; name that of VERSION
  exit code 1
  $ edited manifests/helm/training-operator/Chart.yaml 's/appVersion: .*/appVersion: 9.9.9/'
  release: manifests/helm/training-operator/Chart.yaml has appVersion 9.9.9; set VERSION
  exit code 1
  $ edited CHANGELOG.md 's/ - 2026-01-31//'
  release: CHANGELOG.md has no section "## [VERSION] - DATE"; give "Unreleased" this version and its date
  exit code 1
  $ edited CHANGELOG.md 's/ - 2026-01-31/&\n\n## [0.0.10] - 2026-01-30/'
  release: the section of VERSION in CHANGELOG.md is empty
  exit code 1
  $ check

The notes of a version are its section of the changelog. The points of a version must match literally.

  $ tools/release.sh notes > notes
  $ [ $(wc -c < notes) -gt 1000 ]
  $ sed "1,/ - 2026-01-31/d; /^## \[0.0.9/,\$d" CHANGELOG.md | diff -B - notes
  $ tools/release.sh notes 0.0.9
  Old.
  $ tools/release.sh notes 0.0x9
  ! release: CHANGELOG.md has no section of 0.0x9
  [1]
