#!/bin/bash
# Builds images into target/node/images without a container daemon, unless they are there and current. Nodes import
# all of them when they start. Needs root. Takes five minutes on two cores the first time.
#
#   tests/node/images/build.sh NAME...   some of: small operator mxnet xgboost tvm mpi pytorch jax paddle tensorflow
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
root=$(readlink -f "$here/../../..")
lab=$(readlink -f "$root/target")/node
images=$lab/images
context=$lab/context
mkdir -p "$images" "$context"
export STORAGE_DRIVER=overlay BUILDAH_ISOLATION=chroot CONTAINERS_REGISTRIES_CONF=$lab/registries.conf
echo 'unqualified-search-registries = ["docker.io"]' >"$CONTAINERS_REGISTRIES_CONF"

# Its images lie beside the others of the lab.
buildah() { command buildah --root "$lab/buildah" --runroot "$lab/buildah-run" "$@"; }

# stale NAME SOURCE...: true if an archive is missing or older than one of its sources.
stale() {
    local archive=$images/$1.tar
    shift
    [ ! -e "$archive" ] || [ -n "$(find "$@" -newer "$archive" -type f -print -quit)" ]
}

# image NAME TAG CONTEXT ARGUMENT...: builds an image and writes its archive.
image() {
    local name=$1 tag=$2 folder=$3
    shift 3
    echo "node: building the image $tag" >&2
    buildah bud --pull-never --format docker --tag "$tag" "$@" "$folder" >"$images/$name.log" 2>&1 ||
        { tail -20 "$images/$name.log" >&2; exit 1; }
    rm -f "$images/$name.tar"
    buildah push --quiet "$tag" "docker-archive:$images/$name.tar:$tag"
}

small() {
    cp /bin/busybox "$context/"
    mkdir -p "$context/bin"
    ln -f "$lab/bin/coredns" "$context/bin/coredns"
    ! stale pause "$here/pause.Containerfile" /bin/busybox ||
        image pause registry.k8s.io/pause:3.10.1 "$context" -f "$here/pause.Containerfile"
    ! stale busybox "$here/busybox.Containerfile" /bin/busybox ||
        image busybox docker.io/library/busybox:1.35 "$context" -f "$here/busybox.Containerfile"
    ! stale coredns "$here/coredns.Containerfile" "$lab/bin/coredns" ||
        image coredns registry.k8s.io/coredns/coredns:v1.14.4 "$context" -f "$here/coredns.Containerfile"
}

python() {
    ! buildah images --quiet docker.io/library/python:3.11-slim >/dev/null 2>&1 || return 0
    echo "node: building a base image of Debian's packages (once)" >&2
    mkdir -p "$context/python"
    cp /etc/ssl/certs/ca-certificates.crt "$context/python/"
    [ -e "$context/python/debian.tar" ] || mmdebstrap --quiet --variant=minbase \
        --include=ca-certificates,python3,python3-pip,python3-venv bookworm "$context/python/debian.tar"
    buildah bud --format docker -f "$here/python.Containerfile" -t docker.io/library/python:3.11-slim "$context/python" \
        >"$images/python.log" 2>&1 || { tail "$images/python.log" >&2; exit 1; }
}

# framework NAME EXAMPLE MANIFEST REQUIREMENTS PACKAGES: the image that the manifest of an example names.
framework() {
    local name=$1 example=$2 manifest=$root/examples/$2/$3.yaml requirements=$4 debian=$5 tag
    stale "$name" "$root/examples/$example" "$root/tools/requirements" "$root/tools/debian.sh" \
        "$here/framework.Containerfile" || return 0
    python
    tag=$(sed -n 's/^ *image: //p' "$manifest" | head -1)
    if [ "$name" = mxnet ]; then
        image "$name" "$tag" "$root" -f "$root/examples/mxnet/Dockerfile"
    else
        image "$name" "$tag" "$root" -f "$here/framework.Containerfile" \
            --build-arg "EXAMPLE=$example" --build-arg "REQUIREMENTS=$requirements" --build-arg "DEBIAN=$debian"
    fi
}

# The image that is shipped.
operator() {
    local shipped=$root/target/image/training-operator.tar
    "$root/tools/image.sh" amd64
    ! stale operator "$shipped" || ln -f "$shipped" "$images/operator.tar"
}

for name in "$@"; do
    case $name in
    small | operator) "$name" ;;
    mxnet) framework mxnet mxnet train mxnet "" ;;
    xgboost) framework xgboost xgboost train xgboost libgomp1 ;;
    tvm) framework tvm mxnet tune tvm "libgomp1 gcc libc6-dev" ;;
    mpi) framework mpi mpi train "" "openmpi-bin python3-mpi4py python3-numpy openssh-server openssh-client" ;;
    pytorch) framework pytorch pytorch train pytorch "" ;;
    jax) framework jax jax train jax "" ;;
    paddle) framework paddle paddle train paddle libgomp1 ;;
    tensorflow) framework tensorflow tensorflow mirrored tensorflow "" ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
