{{/* The labels of all objects, as a dictionary in YAML. */}}
{{- define "training-operator.labels" -}}
{{- $labels := dict
  "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_")
  "app.kubernetes.io/name" .Chart.Name
  "app.kubernetes.io/instance" .Release.Name
  "app.kubernetes.io/version" .Chart.AppVersion
  "app.kubernetes.io/component" "controller"
  "app.kubernetes.io/part-of" "kubeflow"
  "app.kubernetes.io/managed-by" .Release.Service -}}
{{- merge $labels .Values.commonLabels | toYaml }}
{{- end }}

{{/* The labels of pods: those that stay when only the chart changes. A Deployment's selector cannot be changed. */}}
{{- define "training-operator.podLabels" -}}
{{- $labels := dict "control-plane" "kubeflow-training-operator" -}}
{{- $labels = merge $labels (omit (include "training-operator.labels" . | fromYaml) "helm.sh/chart" "app.kubernetes.io/managed-by") -}}
{{- merge $labels .Values.podLabels | toYaml }}
{{- end }}

{{/* The metadata of an object. Takes a dictionary: root, and optionally name, cluster, labels and annotations. */}}
{{- define "training-operator.metadata" -}}
{{- $root := .root -}}
name: {{ .name | default $root.Values.fullnameOverride }}
{{- if not .cluster }}
namespace: {{ .namespace | default $root.Release.Namespace }}
{{- end }}
labels:
  {{- merge (include "training-operator.labels" $root | fromYaml) (.labels | default dict) | toYaml | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) $root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "training-operator.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}
{{- else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end }}
{{- end }}
{{- end }}

{{- define "training-operator.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default .Values.fullnameOverride }}
{{- else }}{{ .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{/* The enabled kinds, in the order of values.yaml, as {kinds: [{kind, group, plural, file}]}. */}}
{{- define "training-operator.kinds" -}}
kinds:
{{- range $kind := list "MXJob" "TFJob" "XGBoostJob" "PyTorchJob" "JAXJob" "PaddleJob" "MPIJob" "MxJob" "TfJob" }}
{{- if index $.Values.kinds $kind }}
{{- $group := dict "MxJob" "mxnet.mlkube.io" "TfJob" "mlkube.io" | dig $kind "kubeflow.org" }}
  - {kind: {{ $kind }}, group: {{ $group }}, plural: {{ lower $kind }}s}
{{- end }}
{{- end }}
{{- end }}
