{{/* Who the pods are to the Kubernetes API. Nobody has a token but who needs one. */}}

{{/* The service account of a service: the release's, or the data plane's own where it has rights. */}}
{{- define "lockstep.serviceAccount" -}}
{{- $account := .root.Values.serviceAccount -}}
{{- if not $account.create -}}
{{- $account.name | default "default" -}}
{{- else -}}
{{- $base := $account.name | default (include "lockstep.fullname" .root) -}}
{{- if and (eq .service "dataPlane") (or (include "lockstep.rackInit" .root) (gt (int .root.Values.dataPlane.executors) 0)) -}}
{{- include "lockstep.short" (dict "name" (printf "%s-data-plane" $base) "length" 63) -}}
{{- else -}}
{{- $base -}}
{{- end -}}
{{- end -}}
{{- end -}}
