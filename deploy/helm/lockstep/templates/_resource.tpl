{{/*
The resource as it was given. Helm has every number as a 64-bit float. Written as JSON does it, whole ones stay whole
(1073741824, never 1.073741824e+09); Long.MAX_VALUE, which stands for "for ever", comes out too large and is mended;
others beyond 2^53 are refused, for what they were cannot be known any more.
*/}}
{{- define "lockstep.resource" -}}
{{- $resource := dict -}}
{{- range $field := list "apiVersion" "kind" "metadata" "spec" "status" -}}
{{- if get $.Values $field -}}{{- $_ := set $resource $field (get $.Values $field) -}}{{- end -}}
{{- end -}}
{{- include "lockstep.checkNumbers" (dict "node" $resource.spec "path" "spec") -}}
{{- regexReplaceAllLiteral "(?m): 9223372036854776000$" (toYaml $resource) ": 9223372036854775807" -}}
{{- end -}}

{{- define "lockstep.checkNumbers" -}}
{{- $path := .path -}}
{{- if kindIs "map" .node -}}
{{- range $key, $value := .node -}}{{- include "lockstep.checkNumbers" (dict "node" $value "path" (printf "%s.%s" $path $key)) -}}{{- end -}}
{{- else if kindIs "slice" .node -}}
{{- range $index, $value := .node -}}{{- include "lockstep.checkNumbers" (dict "node" $value "path" (printf "%s[%d]" $path $index)) -}}{{- end -}}
{{- else if kindIs "float64" .node -}}
{{- if and (or (gt .node 9007199254740991.0) (lt .node -9007199254740991.0)) (ne (printf "%.0f" .node) "9223372036854775808") -}}
{{- fail (printf "lockstep: %s is a number of more than 53 bits, which Helm cannot pass on as it was written: put it in quotes" $path) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
What of the resource and the settings a workload has to be started anew for, as a hash; what makes another pod of it, or
other settings, does that by itself. Of other flows' mirrors their
topics, groups and tasks do not matter, and of its own those patterns that the service does not read.
*/}}
{{- define "lockstep.checksum" -}}
{{- $patterns := list "topicsPattern" "topicsExcludePattern" "topicsBlacklistPattern" "groupsPattern" "groupsExcludePattern" "groupsBlacklistPattern" -}}
{{- $groups := list "groupsPattern" "groupsExcludePattern" "groupsBlacklistPattern" -}}
{{- $unread := get (dict "dataPlane" $patterns "heartbeat" $patterns "topicSync" $groups "aclSync" list "checkpoint" list "console" list) .w.service -}}
{{- $mirrors := list -}}
{{- $flow := .w.flow -}}
{{- range $mirror := .root.Values.spec.mirrors -}}
{{- $whole := deepCopy $mirror -}}
{{- if or (eq $.w.service "console") (eq (toJson $mirror) (toJson $flow.mirror)) -}}
{{- range $unread -}}{{- $_ := unset $whole . -}}{{- end -}}
{{- else -}}
{{- range $patterns -}}{{- $_ := unset $whole . -}}{{- end -}}
{{- range $field := list "sourceConnector" "checkpointConnector" "heartbeatConnector" -}}
{{- if kindIs "map" (get $whole $field) -}}
{{- $_ := set $whole $field (omit (get $whole $field) "tasksMax" "state" "pause" "autoRestart") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $mirrors = append $mirrors $whole -}}
{{- end -}}
{{- $spec := omit .root.Values.spec "mirrors" "replicas" "resources" "livenessProbe" "readinessProbe" "template" "image" "affinity" "tolerations" "metrics" "metricsConfig" "jmxOptions" "clientRackInitImage" "jvmOptions" "rack" "externalConfiguration" -}}
{{- $executor := "" -}}
{{- if and (eq .w.service "dataPlane") (gt (int .root.Values.dataPlane.executors) 0) -}}{{- $executor = include "lockstep.executorPod" . -}}{{- end -}}
{{- list $executor .root.Values.apiVersion $spec $mirrors (dig "namespace" "" (.root.Values.metadata)) (include "lockstep.settings" (dict "root" .root "w" .w) | fromJson) | toJson | sha256sum -}}
{{- end -}}
