#!/bin/sh
# Unpacks packages of Debian 12 into a folder, without root and without a change of
# the system. `local run --venv FOLDER` accepts the folder as an environment.
#
#   tools/debian.sh PACKAGES FOLDER        tools/venv.sh pytorch calls it
#   DEBIAN_MIRROR=http://deb.debian.org/debian       another mirror
#
# It serves packages whose wheels are too large: PyPI's PyTorch always includes CUDA.
# The folder has its own Python, so the system's Python does not matter. The
# system's C library must be that of Debian 12 or newer. apt-get uses lists and a
# configuration in the folder, and checks Debian's signatures.
set -eu

fail() {
    echo "$*"
    exit 1
}

packages=$1
folder=$2
keys=/usr/share/keyrings/debian-archive-keyring.gpg
for tool in apt-get dpkg-deb; do
    command -v "$tool" >/dev/null || fail "$tool is missing: this needs Debian, Ubuntu or the like"
done
[ -e "$keys" ] || fail "$keys is missing; install it (Debian, Ubuntu: apt install debian-archive-keyring)"

apt=$folder/apt
debian=$folder/debian
mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/debs" "$debian" "$folder/bin"
: >"$apt/status"
for suite in bookworm bookworm-updates; do
    echo "deb [arch=amd64 signed-by=$keys] ${DEBIAN_MIRROR:-http://deb.debian.org/debian} $suite main"
done >"$apt/sources.list"
echo "deb [arch=amd64 signed-by=$keys] ${DEBIAN_MIRROR:-http://deb.debian.org/debian}-security bookworm-security main" >>"$apt/sources.list"

apt_get() {
    apt-get -q -o Dir::State="$apt" -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" \
        -o Dir::Cache="$apt" -o Dir::Cache::archives="$apt/archives" -o Dir::Etc::sourcelist="$apt/sources.list" \
        -o Dir::Etc::sourceparts=/dev/null -o APT::Architecture=amd64 -o APT::Sandbox::User=root \
        -o Acquire::Languages=none -o Acquire::Retries=2 -o APT::Update::Error-Mode=any "$@" 2>&1
}
apt_get update || fail "apt-get cannot reach Debian's packages; go online, or set DEBIAN_MIRROR"
# shellcheck disable=SC2046 # a word for each package
(cd "$apt/debs" && apt_get download $(sed 's/#.*//' "$packages")) || fail "apt-get cannot download Debian's packages"
for package in "$apt"/debs/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x -C "$debian" --exclude './usr/share/*' --exclude './etc/*' --exclude './var/*'
done
rm -rf "$apt"
ln -s debian/usr/lib "$folder/lib"

# With Python 3.11, torchrun of this version needs the two PET_ variables: without a
# file for its output, it fails when the first process ends.
cat >"$folder/bin/python" <<'END'
#!/bin/sh
# The Python of this environment, with the libraries of the environment.
root=${0%/*}/../debian
libraries=$root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH="$libraries:$root/lib/x86_64-linux-gnu:$root/usr/lib:$libraries/blas:$libraries/lapack${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PYTHONNOUSERSITE=1 PET_TEE="${PET_TEE-1}" PET_REDIRECTS="${PET_REDIRECTS-1}"
exec "$root/usr/bin/python3.11" "$@"
END
cat >"$folder/bin/torchrun" <<'END'
#!/bin/sh
exec "${0%/*}/python" -m torch.distributed.run "$@"
END
chmod +x "$folder/bin/python" "$folder/bin/torchrun"
ln -s python "$folder/bin/python3"
"$folder/bin/python" -I -c 'import torch; assert torch.distributed.is_gloo_available()' || fail "what was unpacked does not run"
