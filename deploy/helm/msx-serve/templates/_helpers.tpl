{{- define "msx-serve.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "msx-serve.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 48 | trimSuffix "-" -}}
{{- else if eq .Release.Name (include "msx-serve.name" .) -}}
{{- .Release.Name | trunc 48 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "msx-serve.name" .) | trunc 48 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "msx-serve.selector" -}}
app.kubernetes.io/name: {{ include "msx-serve.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "msx-serve.labels" -}}
{{ include "msx-serve.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "msx-serve.serviceAccount" -}}
{{- default (include "msx-serve.fullname" .) .Values.serviceAccount.name -}}
{{- end }}

{{- define "msx-serve.modelClaim" -}}
{{- default (printf "%s-models" (include "msx-serve.fullname" .)) .Values.modelStore.existingClaim -}}
{{- end }}

{{- define "msx-serve.keysSecret" -}}
{{- if .Values.keys.existingSecret -}}
{{- .Values.keys.existingSecret -}}
{{- else if .Values.keys.entries -}}
{{- printf "%s-keys" (include "msx-serve.fullname" .) -}}
{{- end -}}
{{- end }}

{{- define "msx-serve.scheme" -}}
{{- if .Values.tls.secretName -}}https{{- else -}}http{{- end -}}
{{- end }}

{{- define "msx-serve.value" -}}
{{- if kindIs "string" . -}}{{ . }}{{- else -}}{{ toJson . }}{{- end -}}
{{- end }}

{{- define "msx-serve.config" -}}
inference_address={{ include "msx-serve.scheme" . }}://0.0.0.0:{{ .Values.ports.http }}
management_address={{ include "msx-serve.scheme" . }}://0.0.0.0:{{ .Values.ports.management }}
metrics_address=http://0.0.0.0:{{ .Values.ports.metrics }}
grpc_inference_address=0.0.0.0
grpc_inference_port={{ .Values.ports.grpc }}
grpc_management_address=0.0.0.0
grpc_management_port={{ .Values.ports.grpcManagement }}
model_store=/models
drain_timeout={{ .Values.drainTimeout }}
{{- if .Values.gpu.count }}
accelerator=nvidia
number_of_gpu={{ .Values.gpu.count }}
{{- else }}
number_of_npu={{ .Values.npu.count }}
{{- end }}
{{- if or .Values.cache.hostPath .Values.cache.existingClaim }}
cache_dir=/cache
{{- end }}
{{- if include "msx-serve.keysSecret" . }}
api_keys_file=/etc/msx/keys/keys.yaml
{{- end }}
{{- if .Values.tls.secretName }}
private_key_file=/etc/msx/tls/tls.key
certificate_file=/etc/msx/tls/tls.crt
enable_grpc_ssl=true
{{- end }}
{{- if .Values.ray.address }}
cluster_address={{ .Values.ray.address }}
{{- end }}
{{- range $key, $value := .Values.config }}
{{ $key }}={{ include "msx-serve.value" $value }}
{{- end }}
{{- end }}
