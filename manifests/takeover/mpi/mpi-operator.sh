#!/bin/sh
# Gives the running jobs of mpi-operator v0.8.2 to this operator, or those of this operator's v2beta1 jobs back to it. No
# pod restarts. Neither operator may run meanwhile, and the definition must have both versions. It needs kubectl as an
# administrator, and can be run again.
#
#   mpi-operator.sh take    The launcher's pod, which a Job owns under mpi-operator, then belongs to the MPIJob itself.
#   mpi-operator.sh give    The launcher's pod then belongs to a Job again.
set -eu

annotation=training.kubeflow.org/launcher-pod

# Prints the namespace, the name and the UID of each running job that this operator (v2beta1) or mpi-operator has begun.
jobs_begun_by() {
    kubectl get mpijobs.v1.kubeflow.org --all-namespaces --output go-template='
{{- range .items}}{{$job := .metadata}}{{$by := or .status.apiVersion "none"}}
{{- range .status.conditions}}
{{- if and (eq $by "none") (eq .message (printf "MPIJob %s/%s is created." $job.namespace $job.name))}}{{$by = "mpi-operator"}}{{end}}
{{- if and (eq .status "True") (or (eq .type "Succeeded") (eq .type "Failed"))}}{{$by = "none"}}{{end}}
{{- end}}{{$by}} {{$job.namespace}} {{$job.name}} {{$job.uid}}{{"\n"}}{{end}}' | sed -n "s/^$1 //p"
}

owner() {
    printf '{"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "%s", "uid": "%s", "controller": %s}' "$1" "$2" "$3"
}

take() {
    pods=$(kubectl get pods --namespace "$1" --selector "job-name=$2-launcher" --sort-by .metadata.creationTimestamp --output name)
    newest=$(printf '%s' "$pods" | tail -n 1)
    kubectl annotate mpijobs.v1.kubeflow.org "$2" --namespace "$1" --overwrite "$annotation=$(basename "${newest:-$2-launcher}")"
    kubectl delete job "$2-launcher" --namespace "$1" --ignore-not-found --cascade=orphan
    for pod in $pods; do
        # The pods of launchers that failed before are deleted with the job, and otherwise left alone.
        is_newest=$([ "$pod" = "$newest" ] && echo true || echo false)
        kubectl patch "$pod" --namespace "$1" --patch "{\"metadata\": {
            \"ownerReferences\": [$(owner "$2" "$3" "$is_newest")],
            \"\$deleteFromPrimitiveList/finalizers\": [\"batch.kubernetes.io/job-tracking\"]}}"
    done
}

give() {
    pod=$(kubectl get mpijobs.v1.kubeflow.org "$2" --namespace "$1" \
        --output go-template="{{with .metadata.annotations}}{{or (index . \"$annotation\") \"\"}}{{end}}")
    pod=${pod:-$2-launcher}
    found=$(kubectl get pod "$pod" --namespace "$1" --ignore-not-found --output json)
    # mpi-operator creates a launcher that is missing.
    [ -n "$found" ] || return 0
    template=$(printf '%s' "$found" | kubectl patch --local --filename - --type merge --patch '{"spec": {"nodeName": null}}' --output jsonpath='{.spec}')
    labels="{\"training.kubeflow.org/operator-name\": \"mpi-operator\", \"training.kubeflow.org/job-name\": \"$2\",
        \"training.kubeflow.org/job-role\": \"launcher\"}"
    limit=$(kubectl get mpijobs.v1.kubeflow.org "$2" --namespace "$1" --output jsonpath='{.spec.runPolicy.backoffLimit}')
    # The Job adopts a pod without an owner that its selector matches.
    kubectl patch pod "$pod" --namespace "$1" --type merge --patch '{"metadata": {"ownerReferences": null}}'
    kubectl create --namespace "$1" --filename - <<JOB || [ -n "$(kubectl get job "$2-launcher" --namespace "$1" --ignore-not-found --output name)" ]
{"apiVersion": "batch/v1", "kind": "Job",
 "metadata": {"name": "$2-launcher", "labels": {"app": "$2"}, "ownerReferences": [$(owner "$2" "$3" true)]},
 "spec": {"backoffLimit": ${limit:-6}, "podReplacementPolicy": "Failed", "manualSelector": true, "selector": {"matchLabels": $labels},
          "template": {"metadata": {"labels": $labels}, "spec": $template}}}
JOB
    kubectl annotate mpijobs.v1.kubeflow.org "$2" --namespace "$1" "$annotation-"
}

case "${1:-}" in
take) begun_by=mpi-operator ;;
give) begun_by=v2beta1 ;;
*)
    echo "usage: mpi-operator.sh take | give" >&2
    exit 2
    ;;
esac
jobs=$(jobs_begun_by $begun_by)
printf '%s\n' "$jobs" | while read -r namespace name uid; do
    [ -z "$name" ] || "$1" "$namespace" "$name" "$uid" </dev/null
done
