{{/*
What is scraped, as Strimzi's PodMonitor has it. Strimzi's operator would take pods with its own labels for its own, so
the labels that its dashboard asks for are given to the samples alone.
*/}}
{{- define "lockstep.relabelings" -}}
{{- $name := (.root.Values.metadata).name | default (include "lockstep.fullname" .root) -}}
- targetLabel: strimzi_io_kind
  replacement: {{ .root.Values.kind }}
- targetLabel: strimzi_io_cluster
  replacement: {{ $name | quote }}
- targetLabel: strimzi_io_name
  replacement: {{ $name }}-{{ ternary "mirrormaker2" "mirror-maker" (eq .root.Values.kind "KafkaMirrorMaker2") }}
- sourceLabels: [__meta_kubernetes_namespace]
  targetLabel: namespace
- sourceLabels: [__meta_kubernetes_pod_name]
  targetLabel: kubernetes_pod_name
- sourceLabels: [__meta_kubernetes_pod_node_name]
  targetLabel: node_name
{{- with .monitor.relabelings }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "lockstep.endpoint" -}}
- port: tcp-prometheus
  path: /metrics
  {{- if eq (toString .root.Values.metrics.scheme) "https" }}
  scheme: https
  {{- end }}
  {{- range $key := list "tlsConfig" "authorization" }}
  {{- with get $.monitor $key }}
  {{ $key }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- with .monitor.interval }}
  interval: {{ . | quote }}
  {{- end }}
  {{- with .monitor.scrapeTimeout }}
  scrapeTimeout: {{ . | quote }}
  {{- end }}
  {{- if .monitor.honorLabels }}
  honorLabels: true
  {{- end }}
  relabelings:
    {{- include "lockstep.relabelings" . | nindent 4 }}
  {{- with .monitor.metricRelabelings }}
  metricRelabelings:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/*
The pages of a workload `w` have TLS, or require a token, if its arguments or its variables say so. Probes then need TLS
too, and a monitor the token: without them a release would be restarted for ever, or be without metrics in silence.
*/}}
{{- define "lockstep.checkPages" -}}
{{- $metrics := .root.Values.metrics -}}{{- $w := .w -}}{{- $console := .root.Values.console -}}
{{- $pages := $w.service -}}
{{- with $w.flow.name -}}{{- $pages = printf "%s for %s" $w.service . -}}{{- end -}}
{{- $named := list -}}
{{- range $w.settings.extraArgs -}}{{- $named = append $named (tpl (toString .) $.root | splitList "=" | first) -}}{{- end -}}
{{- range $from := list $w.settings.env $w.settings.extraEnv -}}
{{- range $from -}}{{- $named = append $named (tpl (toString .name) $.root) -}}{{- end -}}
{{- end -}}
{{- $tls := or (has "--tls-cert" $named) (has "LOCKSTEP_TLS_CERT" $named) -}}
{{- if and $tls (ne (toString $metrics.scheme) "https") -}}
{{- fail (printf "lockstep: the pages of %s have TLS: set metrics.scheme to https, or no probe reaches them" $pages) -}}
{{- end -}}
{{- $token := or (has "--token-file" $named) (has "LOCKSTEP_TOKEN_FILE" $named) (has "LOCKSTEP_TOKEN" $named) -}}
{{- if eq $w.service "console" -}}{{- $token = or $token $console.tokenSecret.name -}}{{- end -}}
{{- range $monitor := list "podMonitor" "serviceMonitor" -}}
{{- $one := get $metrics $monitor -}}
{{- if and $token $one.enabled (not $one.authorization) -}}
{{- fail (printf "lockstep: the pages of %s require a token: set metrics.%s.authorization, or Prometheus is refused" $pages $monitor) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Everything but the executors has pages. */}}
{{- define "lockstep.scraped" -}}
matchLabels:
  {{- include "lockstep.selector" (dict "root" .) | nindent 2 }}
matchExpressions:
  - key: app.kubernetes.io/component
    operator: In
    values: [topic-sync, acl-sync, checkpoint, heartbeat, data-plane{{ ternary ", console" "" .Values.console.enabled }}]
{{- end -}}
