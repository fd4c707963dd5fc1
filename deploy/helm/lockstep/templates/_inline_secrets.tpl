{{/*
Secrets in clear text are refused. Helm keeps the values in the release, the resource goes into a ConfigMap, and variables
stand in the pod: whoever may read one of them would read the secret. Prints nothing.
*/}}
{{- define "lockstep.checkInlineSecrets" -}}
{{- $v := .Values -}}
{{- $parts := dict "spec" $v.spec "settings" $v.settings "common" $v.common "services" $v.services "flows" $v.flows "dataPlane" $v.dataPlane -}}
{{- range $name, $node := $parts -}}
{{- include "lockstep.refuseSecrets" (dict "node" $node "place" $name "settings" (eq $name "settings")) -}}
{{- end -}}
{{- end -}}

{{/* Looks for secrets in a part of the values. `settings`: its keys are those of a properties file. */}}
{{- define "lockstep.refuseSecrets" -}}
{{- $place := .place -}}{{- $settings := .settings -}}
{{- if kindIs "map" .node -}}
{{- if and (kindIs "string" .node.name) (hasKey .node "value") -}}
{{- include "lockstep.refuseSecret" (dict "key" .node.name "value" .node.value "place" $place) -}}
{{- end -}}
{{- range $key, $value := .node -}}
{{- if or (kindIs "map" $value) (kindIs "slice" $value) -}}
{{- include "lockstep.refuseSecrets" (dict "node" $value "place" (printf "%s.%s" $place $key) "settings" (eq $key "config")) -}}
{{- else if $settings -}}
{{- include "lockstep.refuseSecret" (dict "key" $key "value" $value "place" $place) -}}
{{- end -}}
{{- end -}}
{{- else if kindIs "slice" .node -}}
{{- range $index, $value := .node -}}
{{- include "lockstep.refuseSecrets" (dict "node" $value "place" (printf "%s[%d]" $place $index) "settings" false) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Fails where the value of a key is a secret and no reference. The words are those that the services mask by
(lockstep_config.text.secrets), without what names a file, a class or a Secret. A login module has options, of which some
are secrets. A hook is a command, and no secret as such.
*/}}
{{- define "lockstep.refuseSecret" -}}
{{- $value := ternary "" (toString .value) (kindIs "invalid" .value) -}}
{{- $secret := regexMatch "(?i)(password|passphrase|secret|token|jaas|credential|private|basic\\.auth|(^|[._-])key$|key\\.?material)" .key -}}
{{- $public := regexMatch "(?i)(token\\.endpoint\\.url|location|file|path|enabled|class|retry\\.backoff(\\.max)?\\.ms)$|spark\\.kubernetes\\..*\\.(secrets|secretKeyRef)\\." .key -}}
{{- if and $secret (not $public) -}}
{{- $clear := regexReplaceAll "\\$\\{[^}]+\\}|\\$\\([^)]+\\)" $value "" -}}
{{- if regexMatch "(?i)jaas" .key -}}
{{- $clear = regexFind "(?i)(password|passphrase|secret|token|key|assertion)\\w*\\s*=\\s*(\"[^\"]+\"|'[^']+'|[^\"'\\s;]+)" $clear -}}
{{- end -}}
{{- if $clear | trim -}}
{{- fail (printf "lockstep: %s has the secret of %q in clear text: whoever may read the release or its ConfigMap would read it. Put it into a Secret, and write a reference: ${secrets:NAMESPACE/NAME:KEY} for a setting, valueFrom.secretKeyRef for a variable" .place .key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
