#!/bin/sh
# Unpacks packages of Debian 13 into a folder, without root and without a change of
# the system. `local run --venv FOLDER` accepts the folder as an environment.
#
#   tools/debian.sh PACKAGES FOLDER        tools/venv.sh pytorch calls it
#   DEBIAN_MIRROR=http://deb.debian.org/debian       another mirror
#
# It serves packages whose wheels are too large: PyPI's PyTorch always includes CUDA.
# The folder has its own Python and C library, so the system's do not matter. apt-get
# uses lists and a configuration in the folder, and checks Debian's signatures.
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
for suite in trixie trixie-updates; do
    echo "deb [arch=amd64 signed-by=$keys] ${DEBIAN_MIRROR:-http://deb.debian.org/debian} $suite main"
done >"$apt/sources.list"
echo "deb [arch=amd64 signed-by=$keys] ${DEBIAN_MIRROR:-http://deb.debian.org/debian}-security trixie-security main" >>"$apt/sources.list"

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

# --argv0 makes this file sys.executable, so that Python starts itself by it again.
# Programs of the system inherit LD_LIBRARY_PATH, but not --library-path.
cat >"$folder/bin/python" <<'END'
#!/bin/sh
# The Python of this environment, with the loader and the libraries of the environment.
case $0 in
/*) file=$0 ;;
*) file=$PWD/$0 ;;
esac
usr=${file%/*}/../debian/usr
libraries=$usr/lib/x86_64-linux-gnu
export PYTHONNOUSERSITE=1
exec "$libraries/ld-linux-x86-64.so.2" --argv0 "$file" \
    --library-path "$libraries:$usr/lib:$libraries/blas:$libraries/lapack" "$usr/bin/python3.13" "$@"
END
cat >"$folder/bin/torchrun" <<'END'
#!/bin/sh
exec "${0%/*}/python" -m torch.distributed.run "$@"
END
chmod +x "$folder/bin/python" "$folder/bin/torchrun"
ln -s python "$folder/bin/python3"

# torchrun does not read USE_LIBUV for the store at which its workers meet.
cat >>"$debian/usr/lib/python3/dist-packages/torch/distributed/__init__.py" <<'END'


def _without_libuv(init):
    """Debian builds PyTorch without libuv, which all stores use by default."""
    return lambda *args, **options: init(*args, **{**options, "use_libuv": False})


TCPStore.__init__ = _without_libuv(TCPStore.__init__)
END
"$folder/bin/python" -I - <<'END' || fail "what was unpacked does not run"
import os, sys, torch

assert torch.distributed.is_gloo_available()
torch.distributed.TCPStore("127.0.0.1", 0, is_master=True)
files = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
outside = [file for file in files if not file.startswith(os.path.realpath(sys.prefix) + "/")]
assert not outside, f"a package is missing: the system's libraries {outside} are loaded"
END
