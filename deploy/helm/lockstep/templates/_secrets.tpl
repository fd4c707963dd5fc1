{{/*
Which secrets and config maps the pods mount. A resource names secrets by `secretName`, and both by references
`${secrets:NAMESPACE/NAME:KEY}`; each is mounted as a folder of its name, where the loader looks for it, and follows its
changes there.
*/}}

{{/* Adds what a part of the resource says under `secretName` to `found`, a mapping. */}}
{{- define "lockstep.walk" -}}
{{- $found := .found -}}
{{- if kindIs "map" .node -}}
{{- range $key, $value := .node -}}
{{- if and (eq $key "secretName") (kindIs "string" $value) -}}
{{- if $value -}}{{- $_ := set $found $value true -}}{{- end -}}
{{- else -}}
{{- include "lockstep.walk" (dict "node" $value "found" $found) -}}
{{- end -}}
{{- end -}}
{{- else if kindIs "slice" .node -}}
{{- range .node -}}{{- include "lockstep.walk" (dict "node" . "found" $found) -}}{{- end -}}
{{- end -}}
{{- end -}}

{{/*
The references to secrets and config maps in the resource and in `settings`, as JSON: {"references": [{text, what, name,
namespace}]}. Besides Strimzi's names of the providers, those that the resource gives them itself count.
*/}}
{{- define "lockstep.references" -}}
{{- $text := printf "%s\n%s" (toJson .Values.spec) (toJson .Values.settings) -}}
{{- $providers := dict "secrets" "secret" "strimzisecrets" "secret" "configmaps" "config map" -}}
{{- range regexFindAll "config\\.providers\\.[A-Za-z0-9_-]+\\.class['\"]?: *['\"]?io\\.strimzi\\.kafka\\.Kubernetes(Secret|ConfigMap)ConfigProvider" $text -1 -}}
{{- $name := regexReplaceAll "^config\\.providers\\.([A-Za-z0-9_-]+)\\.class.*$" . "${1}" -}}
{{- $_ := set $providers $name (ternary "secret" "config map" (contains "KubernetesSecret" .)) -}}
{{- end -}}
{{- $found := list -}}
{{- range $reference := regexFindAll "\\$\\{[A-Za-z0-9_-]+:[^}:\\s]+:[^}]*\\}" $text -1 | uniq -}}
{{- $provider := regexReplaceAll "^\\$\\{([^:]+):.*$" $reference "${1}" -}}
{{- if hasKey $providers $provider -}}
{{- $path := regexReplaceAll "^\\$\\{[^:]+:([^:]+):.*$" $reference "${1}" -}}
{{- $parts := splitList "/" $path -}}
{{- $namespace := ternary (first $parts) "" (gt (len $parts) 1) -}}
{{- $found = append $found (dict "text" $reference "what" (get $providers $provider) "name" (last $parts) "namespace" $namespace) -}}
{{- end -}}
{{- end -}}
{{- dict "references" $found | toJson -}}
{{- end -}}

{{/* The names, as JSON: {"secrets": [...], "configMaps": [...]}, sorted. */}}
{{- define "lockstep.mounted" -}}
{{- $secrets := dict -}}{{- $configMaps := dict -}}
{{- /* Secrets of the pod's own volumes and variables are not the loader's. */ -}}
{{- include "lockstep.walk" (dict "node" (omit .Values.spec "template" "externalConfiguration") "found" $secrets) -}}
{{- range (include "lockstep.references" . | fromJson).references -}}
{{- $_ := set (ternary $secrets $configMaps (eq .what "secret")) .name true -}}
{{- end -}}
{{- range .Values.extraSecrets -}}{{- $_ := set $secrets . true -}}{{- end -}}
{{- range .Values.extraConfigMaps -}}{{- $_ := set $configMaps . true -}}{{- end -}}
{{- range keys $secrets -}}
{{- if hasKey $configMaps . -}}
{{- fail (printf "lockstep: %q is the name of a secret and of a config map: both would be the folder %s; rename one" . .) -}}
{{- end -}}
{{- end -}}
{{- dict "secrets" (keys $secrets | sortAlpha) "configMaps" (keys $configMaps | sortAlpha) | toJson -}}
{{- end -}}

{{/* The ConfigMap of external logging, as JSON: {"name": ...}, empty where there is none. */}}
{{- define "lockstep.loggingConfigMap" -}}
{{- $logging := .Values.spec.logging | default dict -}}
{{- $name := "" -}}
{{- if eq (toString $logging.type) "external" -}}
{{- $reference := ($logging.valueFrom | default dict).configMapKeyRef | default dict -}}
{{- $name = $reference.name | default $logging.name | default "" -}}
{{- end -}}
{{- $name -}}
{{- end -}}
