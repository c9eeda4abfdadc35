#!/bin/sh
# Makes pages of stories, from the tests' values and from real local runs, and checks them in headless Chromium, then the
# pages of `kubectl training ui` on a local cluster. The pictures of a failed job become those of the docs.
#
# usage: tools/pages/check.sh
set -eu
cd "$(dirname "$0")/../.."
work=target/pages
operator=target/debug/training-operator
rm -rf "$work/html"
mkdir -p "$work/html"
cp tools/pages/package.json tools/pages/package-lock.json tools/pages/check.js tools/pages/live.js tools/pages/heads.js "$work"
(cd "$work" && npm ci --silent --no-audit --no-fund)
cargo run --quiet --package training-job-story --example pages -- "$work/html"

# A job that fails: exit code 1, and a page all the same.
code=0
"$operator" local run operator/tests/pages/failing.yaml --report "$work/html/local.html" >"$work/local.log" 2>&1 || code=$?
[ "$code" = 1 ] || { cat "$work/local.log"; echo "local run ended with $code, not 1" >&2; exit 1; }
grep -qs 'RuntimeError: &lt;b&gt;loss&lt;/b&gt;' "$work/html/local.html"

# A run that Ctrl-C ends: exit code 130, and a page all the same.
"$operator" local run operator/tests/pages/failing.yaml --report "$work/html/interrupted.html" >"$work/interrupted.log" 2>&1 &
pid=$!
until grep -qs 'step 5/' "$work/interrupted.log"; do
    kill -0 "$pid" || { cat "$work/interrupted.log"; exit 1; }
done
kill -INT "$pid"
code=0
wait "$pid" || code=$?
[ "$code" = 130 ] || { cat "$work/interrupted.log"; echo "local run ended with $code, not 130" >&2; exit 1; }

cd "$work"
node check.js html ../../docs/users/pictures local
cd ../..

# The same job on a local cluster, in a browser that is open from the start.
kubeconfig=$work/kubeconfig
ln -sf ../debug/training-operator "$work/kubectl-training"
rm -f "$kubeconfig"
"$operator" local cluster --kubeconfig "$kubeconfig" >"$work/cluster.log" 2>&1 &
cluster=$!
trap 'kill -INT "$cluster" $ui 2>/dev/null || true' EXIT
ui=
until grep -qs 'cluster ready' "$work/cluster.log"; do
    kill -0 "$cluster" || { cat "$work/cluster.log"; exit 1; }
done
"$work/kubectl-training" ui --kubeconfig "$kubeconfig" >"$work/ui.log" 2>&1 &
ui=$!
until grep -qs 'token=' "$work/ui.log"; do
    kill -0 "$ui" || { cat "$work/ui.log"; exit 1; }
done
"${KUBECTL:-target/control-plane/kubectl}" --kubeconfig "$kubeconfig" create -f operator/tests/pages/failing.yaml -f operator/tests/pages/others.yaml
(cd "$work" && node live.js "$(cat ui.log)" PyTorchJob mnist ../../docs/users/pictures)
