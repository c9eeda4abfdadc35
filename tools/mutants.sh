#!/bin/sh
# Mutation tests of the rules, by area: plan, gangs, validate, apply, cache, watch, mxnet. Without arguments, all areas.
#
# Each mutant is built in a worktree of HEAD, first with the tests that most likely notice it. Those that survive are
# run again with all tests that need neither a control plane nor MXNet. target/mutants/AREA has the reports.
# With SINCE=COMMIT, only lines that were written after that commit are changed.
set -eu
cd "$(dirname "$0")/.."
command -v cargo-mutants >/dev/null || { echo "make: cargo-mutants is missing; run: cargo install --locked cargo-mutants" >&2; exit 1; }
root=$PWD/target/mutants
tree=$root/tree
mkdir -p "$root"
git worktree prune
[ -d "$tree" ] || git worktree add --quiet --force --detach "$tree" HEAD
git -C "$tree" checkout --quiet --force --detach "$(git rev-parse HEAD)"
changed=
if [ -n "${SINCE:-}" ]; then
	git -C "$tree" diff "$SINCE" HEAD >"$root/since.diff"
	changed="--in-diff=$root/since.diff"
fi
export CARGO_TARGET_DIR="$root/target" CARGO_INCREMENTAL=1 INSTA_UPDATE=no

# mutants AREA GLOB PACKAGES -- TESTS: the tests as cargo has them, such as --test=plan.
mutants() {
	area=$1 glob=$2 packages=$3 again=$4
	shift 4
	(cd "$tree" && cargo test --quiet --profile mutants --all-features $packages "$@")
	only=
	for package in $packages; do case $package in -p) ;; *) only="$only --test-package=$package" ;; esac; done
	arguments=
	for test in "$@"; do arguments="$arguments --cargo-arg=$test"; done
	# The next pass reports the survivors.
	(cd "$tree" && cargo mutants --in-place --workspace --all-features --no-shuffle --baseline=skip --timeout=120 \
		--file="$glob" --output="$root/$area" $changed $again $only $arguments) || [ $? -eq 2 ]
}

both="-p training-job -p training-job-mxnet"
# Features that only some kinds use, such as replicas that a job can do without.
kinds="$both -p training-job-controller -p training-job-jax -p training-job-mlkube -p training-job-mpi -p training-job-paddle\
 -p training-job-pytorch -p training-job-tensorflow -p training-job-xgboost"
# Simulated lives with faults.
lives="-p training-job-simulation"
for area in ${*:-plan gangs mxnet apply cache watch validate}; do
	case $area in
	plan)
		mutants plan 'src/plan/**' '-p training-job' '' --test=plan
		mutants plan 'src/plan/**' "$kinds" --iterate --lib --test=plan --test=contract --test=kind
		;;
	gangs)
		gangs='{src/plan/gang/**,src/render/gang.rs,src/job/gang_scheduler.rs,crates/training-job-controller/src/freed_capacity.rs}'
		mutants gangs "$gangs" '-p training-job' '' --lib --test=plan
		# The launcher of this kind is created later.
		mutants gangs "$gangs" '-p training-job-mpi' --iterate --test=kind
		;;
	mxnet)
		mutants mxnet 'frameworks/mxnet/src/**' '-p training-job-mxnet' '' --test=kind
		mutants mxnet 'frameworks/mxnet/src/**' '-p training-job-mxnet' --iterate --lib
		;;
	apply)
		mutants apply crates/training-job-controller/src/apply.rs '-p training-job-controller' '' --lib
		# Stories of kinds with objects of several kinds.
		mutants apply crates/training-job-controller/src/apply.rs '-p training-job' --iterate --test=contract
		mutants apply crates/training-job-controller/src/apply.rs "$lives" --iterate --test=matrix --test=slice
		;;
	cache)
		cache='crates/training-job-controller/src/{answers,cache/*,job_state,observe,queue,reconcile,requeue}.rs'
		mutants cache "$cache" '-p training-job-controller' '' --lib
		mutants cache "$cache" "$lives" --iterate --test=matrix --test=slice
		mutants cache "$cache" '-p training-job-fuzz-targets' --iterate --test=corpus
		;;
	watch)
		watch='{crates/kube-follow/src/{watch,watch/error,watch/failures,watch/stream,backoff,call,version},src/plan/observed,crates/training-job-controller/src/{context,events,merge_patch,operator,rate_limit,report,watch}}.rs'
		mutants watch "$watch" '-p training-job -p training-job-controller -p kube-follow' '' --lib --test=server
		mutants watch "$watch" '-p training-job' --iterate --test=plan
		mutants watch "$watch" "$lives" --iterate --test=matrix --test=slice
		;;
	validate)
		mutants validate '{src/validate/**,crates/kube-schema/src/**}' '-p training-job -p kube-schema' '' --lib
		mutants validate 'src/validate/**' "$both" --iterate --lib --test=kind --test=plan --test=contract
		;;
	*)
		echo "make: there is no area $area; use plan, gangs, mxnet, apply, cache, watch, validate" >&2
		exit 1
		;;
	esac
done
alive=$(cat "$root"/*/mutants.out/missed.txt 2>/dev/null | wc -l)
echo "$alive alive:"
cat "$root"/*/mutants.out/missed.txt
