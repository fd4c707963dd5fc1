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

{{/* Everything but the executors has pages. */}}
{{- define "lockstep.scraped" -}}
matchLabels:
  {{- include "lockstep.selector" (dict "root" .) | nindent 2 }}
matchExpressions:
  - key: app.kubernetes.io/component
    operator: In
    values: [topic-sync, acl-sync, checkpoint, heartbeat, data-plane]
{{- end -}}
