#!/bin/sh
# Makes the Python environment .venv/NAME below the project root from
# tools/requirements/NAME.txt, unless a complete and current one is there.
#
#   tools/venv.sh mxnet|tvm|xgboost|tensorflow|pytorch|jax|paddle|mpi|tqdm|sdk|sdk-1.9|image|bill|dashboard
#   PYTHON=/path/to/python3.11 tools/venv.sh mxnet      with that interpreter
#
# An environment is complete when its last file exists: the stamp, a copy of its
# requirements. An incomplete or outdated environment is removed and made again.
# The script prints each download of pip, and writes all output of pip to
# .venv/NAME.log. The environment pytorch consists of Debian's packages and has
# its own Python and C library: see tools/debian.sh.
set -eu

fail() {
    echo "venv: $*" >&2
    exit 1
}

name=${1-}
case $name in
mxnet) title='Apache MXNet 1.9.1' needs='Python 3.8 to 3.11' fits='(3, 8) <= v < (3, 12)' ;;
tvm) title='Apache TVM 0.27' needs='Python 3.10 to 3.13' fits='(3, 10) <= v < (3, 14)' ;;
tensorflow) title='TensorFlow 2.19.1' needs='Python 3.11' fits='(3, 11) <= v < (3, 12)' size='about 400 MB' ;;
xgboost) title='XGBoost 3.2.0' needs='Python 3.10 to 3.13' fits='(3, 10) <= v < (3, 14)' ;;
jax) title='JAX 0.10.2' needs='Python 3.11 to 3.13' fits='(3, 11) <= v < (3, 14)' size='about 140 MB' ;;
paddle) title='PaddlePaddle 3.3.1' needs='Python 3.11 to 3.13' fits='(3, 11) <= v < (3, 14)' size='about 220 MB' ;;
mpi) title='Open MPI 5.0.11' needs='Python 3.11 to 3.13' fits='(3, 11) <= v < (3, 14)' size='about 25 MB' ;;
tqdm) title='tqdm 4.70.1' needs='Python 3.8 to 3.13' fits='(3, 8) <= v < (3, 14)' size='about 1 MB' ;;
pytorch) title='PyTorch 2.6.0' size='about 125 MB' ;;
sdk) title='Kubeflow training SDK 1.8.1' needs='Python 3.10 to 3.13' fits='(3, 10) <= v < (3, 14)' ;;
sdk-1.9) title='Kubeflow training SDK 1.9.4' needs='Python 3.10 to 3.13' fits='(3, 10) <= v < (3, 14)' ;;
image) title='Zig 0.17.1' needs='Python 3.10 to 3.13' fits='(3, 10) <= v < (3, 14)' size='about 100 MB' ;;
bill) title='CycloneDX 11.12' needs='Python 3.10 to 3.13' fits='(3, 10) <= v < (3, 14)' size='about 10 MB' ;;
dashboard) title='Grafana Foundation SDK 11.6' needs='Python 3.11 to 3.13' fits='(3, 11) <= v < (3, 14)' size='about 1 MB' ;;
*)
    echo 'usage: tools/venv.sh mxnet|tvm|xgboost|tensorflow|pytorch|jax|paddle|mpi|tqdm|sdk|sdk-1.9|image|bill|dashboard' >&2
    exit 2
    ;;
esac

root=$(cd "$(dirname "$0")/.." && pwd)
wanted=$root/tools/requirements/$name.txt
venv=$root/.venv/$name
stamp=$venv/complete.txt
log=$root/.venv/$name.log
remedy="install one, or name it: PYTHON=/path/to/python3.11"

# All calls use -I, so that PYTHONPATH and the user's packages have no effect.
version() { "$1" -I -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null; }
fits() { "$1" -I -c "import sys; v = sys.version_info; sys.exit(not ($fits))" 2>/dev/null; }
can_venv() { "$1" -I -c 'import venv, ensurepip' 2>/dev/null; }
home() { "$1" -I -c 'import sys; print(sys.base_prefix, sys.version)' 2>/dev/null; }

# True if the environment is complete and has these requirements, and its
# interpreter works and is the one that PYTHON names, if it is set.
current() {
    cmp -s "$wanted" "$stamp" || return 1
    here=$(home "$venv/bin/python") || return 1
    [ "$name" != pytorch ] || return 0
    [ -z "${PYTHON-}" ] || [ "$here" = "$(home "$PYTHON")" ]
}

find_python() {
    if [ -n "${PYTHON-}" ]; then
        found=$(version "$PYTHON") || fail "PYTHON=$PYTHON does not run; $title needs $needs"
        fits "$PYTHON" || fail "PYTHON=$PYTHON is Python $found; $title needs $needs: $remedy"
        can_venv "$PYTHON" || fail "PYTHON=$PYTHON has no venv module; install it (Debian, Ubuntu: apt install python${found%.*}-venv)"
        python=$PYTHON
        return 0
    fi
    seen='' bare=''
    for python in python3.11 python3.10 python3.9 python3.8 python3; do
        found=$(version "$python") || continue
        if ! fits "$python"; then
            seen="$seen, $python is $found"
        elif ! can_venv "$python"; then
            bare=${bare:-${found%.*}}
        else
            return 0
        fi
    done
    [ -z "$bare" ] || fail "Python $bare has no venv module; install it (Debian, Ubuntu: apt install python$bare-venv), or name another: PYTHON=/path/to/python3.11"
    [ -n "$seen" ] || seen=', no python3 on PATH'
    fail "$title needs $needs; found: ${seen#, }; $remedy"
}

! current || exit 0
mkdir -p "$root/.venv"

# Run one at a time if the system has flock; a second caller finds the result.
if command -v flock >/dev/null; then
    exec 9>"$root/.venv/$name.lock"
    flock 9
    ! current || exit 0
fi

platform=$(uname -sm)
[ "$platform" = 'Linux x86_64' ] || fail "$title has wheels for Linux x86_64; this is $platform"

# The lines of pip that show its progress, such as "Downloading NAME.whl (47.3 MB)".
progress() {
    sed -nu -e 's/^ *Downloading \(.*([0-9.]* [kMG]B)\).*/venv: downloading \1/p' \
        -e 's/^ *Using cached \(.*([0-9.]* [kMG]B)\).*/venv: from the cache of pip: \1/p' \
        -e 's/^Installing collected packages.*/venv: unpacking/p' >&2
}

# Only wheels, so that nothing is compiled. A pipe has the status of its last
# command, so a file records that pip has succeeded.
from_wheels() {
    find_python
    echo "venv: making .venv/$name with Python $found ($title; a download of ${size:-70 to 130 MB})" >&2
    rm -rf "$venv"
    "$python" -I -m venv "$venv" >"$log" 2>&1 || fail "$python -m venv failed: $(tail -n 1 "$log") (all of it: $log)"
    done=$venv/installed
    {
        "$venv/bin/python" -I -u -m pip install --disable-pip-version-check --no-input --retries 2 --progress-bar off \
            --only-binary :all: --no-compile --requirement "$wanted" 2>&1 && : >"$done"
    } | tee -a "$log" | progress
    if [ ! -e "$done" ]; then
        if grep -Eq 'Failed to establish a new connection|ConnectTimeout|ReadTimeout|Name or service not known|name resolution|ProxyError|SSLError|ConnectionReset|RemoteDisconnected|from versions: none' "$log"; then
            fail "pip cannot reach a package index that has them; go online, or set PIP_INDEX_URL, HTTPS_PROXY or PIP_FIND_LINKS (all of it: $log)"
        fi
        fail "pip failed: $(grep '^ERROR' "$log" | head -n 1) (all of it: $log)"
    fi
}

from_debian() {
    echo "venv: making .venv/$name from Debian's packages ($title; a download of ${size})" >&2
    rm -rf "$venv"
    "$root/tools/debian.sh" "$wanted" "$venv" >"$log" 2>&1 || fail "$(tail -n 1 "$log") (all of it: $log)"
}

case $name in
pytorch) from_debian ;;
*) from_wheels ;;
esac
echo "venv: compiling the packages' Python files" >&2

# Compile once, here. Otherwise each process of each job compiles the files again
# if PYTHONDONTWRITEBYTECODE is set, and a job takes half as long again. Some
# packages have files for another Python that do not compile, which is harmless.
"$venv/bin/python" -I -m compileall -q -j 0 "$venv/lib" >>"$log" 2>&1 || :

cp "$wanted" "$stamp.part"
mv "$stamp.part" "$stamp"
echo "venv: .venv/$name is ready" >&2
