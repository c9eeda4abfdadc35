#!/bin/sh
# Builds what real nodes need into target/node, unless it is there and current: programs, and images of jobs and of the
# operator. Takes fifteen minutes on two cores the first time. Needs root, Go, and packages of Debian, which it names.
#
#   tests/node/build.sh             with the images of MXNet, XGBoost, TVM and MPI
#   tests/node/build.sh all         with those of PyTorch, JAX, PaddlePaddle and TensorFlow too (about 890 MB)
#   tests/node/build.sh jax         with this one too
set -eu
cd "$(dirname "$0")"
[ "$(id -u)" = 0 ] || { echo "node: real nodes need root; run it as root, or with sudo" >&2; exit 1; }
missing=
for package in runc containernetworking-plugins buildah mmdebstrap iptables nftables conntrack busybox-static openssl; do
    dpkg -s $package >/dev/null 2>&1 || missing="$missing $package"
done
[ -z "$missing" ] || { echo "node: packages are missing: apt-get install --no-install-recommends$missing" >&2; exit 1; }

../control-plane/build.sh
../helm/build.sh helm4
programs/build.sh
extra=$*
[ "$extra" != all ] || extra="pytorch jax paddle tensorflow"
# shellcheck disable=SC2086 # They are words.
images/build.sh small operator mxnet xgboost tvm mpi $extra
images/seed.sh
