{{- define "nimbus.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "nimbus.selector" -}}
app.kubernetes.io/name: nimbus
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "nimbus.labels" -}}
{{ include "nimbus.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "nimbus.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* What cannot work is refused before anything is installed. */ -}}
{{- define "nimbus.check" -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- if not .Values.database.host -}}
{{- fail "replicas above 1 need database.host: a private database belongs to one server" -}}
{{- end -}}
{{- if not .Values.keys.existingSecret -}}
{{- fail "replicas above 1 need keys.existingSecret: servers on one database share their keys" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.database.host (not .Values.database.existingSecret) -}}
{{- fail "database.host needs database.existingSecret, a secret with the key `password`" -}}
{{- end -}}
{{- end -}}
