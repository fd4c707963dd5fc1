{{/* The console: one Deployment for all flows, what it is told of who may act, and the Service that browsers reach it by. */}}

{{/* Its own arguments, each with its value in one word. */}}
{{- define "lockstep.consoleArgs" -}}
{{- $console := .Values.console -}}
{{- with $console.tokenSecret.name }}
- --token-file=/etc/lockstep/console/token
{{- end }}
{{- with $console.trustHeader }}
- {{ printf "--trust-header=%s" . | quote }}
{{- end }}
{{- if $console.anonymousRead }}
- --anonymous-read
{{- end }}
{{- end -}}

{{/* The folder of its token. A secret that changes is read again: it is a folder, not a file with a subPath. */}}
{{- define "lockstep.consoleMounts" -}}
{{- with .Values.console.tokenSecret.name -}}
- name: console-token
  mountPath: /etc/lockstep/console
  readOnly: true
{{- end -}}
{{- end -}}

{{- define "lockstep.consoleVolumes" -}}
{{- with .Values.console.tokenSecret -}}
{{- if .name -}}
- name: console-token
  secret:
    secretName: {{ .name | quote }}
    defaultMode: 288 # 0440: the group, which is the pod's fsGroup
    items:
      - key: {{ .key | quote }}
        path: token
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Who may reach it, as peers of a NetworkPolicy: its clients, and who scrapes. Empty: everybody. */}}
{{- define "lockstep.consolePeers" -}}
{{- with .Values.console.clients -}}
{{- tpl (toYaml (concat . ($.Values.networkPolicy.metricsFrom | default list))) $ -}}
{{- end -}}
{{- end -}}

{{- define "lockstep.checkConsole" -}}
{{- $console := .Values.console -}}
{{- if $console.enabled -}}
{{- if and $console.trustHeader .Values.networkPolicy.enabled (not $console.clients) -}}
{{- fail (printf "lockstep: with console.trustHeader whoever reaches the console acts as any user: name the pods of the proxy that sets %s in console.clients" $console.trustHeader) -}}
{{- end -}}
{{- if and $console.anonymousRead (not (or $console.tokenSecret.name $console.trustHeader)) -}}
{{- fail "lockstep: console.anonymousRead has no effect without console.tokenSecret or console.trustHeader: everybody may read then, and nobody may act. Set one of them, or take it away" -}}
{{- end -}}
{{- end -}}
{{- end -}}
