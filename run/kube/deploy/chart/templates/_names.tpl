{{/* Names and labels that several templates share. */}}

{{- define "muster.labels" -}}
app.kubernetes.io/name: muster
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "muster.account" -}}
{{ default .Release.Name .Values.serviceAccount.name }}
{{- end }}

{{- define "muster.lease" -}}
{{ default .Release.Name .Values.leaseName }}
{{- end }}

{{- define "muster.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}
{{- end }}
