{{/*
What holds for one workload, from the least to the most particular: `common`, the resource's own pod template,
`services.SERVICE`, and `flows['A->B'].SERVICE`.
*/}}

{{/* The pod template and its like of the resource, with the names of `common`, as JSON. */}}
{{- define "lockstep.ofResource" -}}
{{- $spec := .root.Values.spec -}}
{{- $template := $spec.template | default dict -}}
{{- $pod := $template.pod | default dict -}}
{{- $container := $template.connectContainer | default $template.mirrorMakerContainer | default dict -}}
{{- $metadata := $pod.metadata | default dict -}}
{{- $external := $spec.externalConfiguration | default dict -}}
{{- $found := dict
  "affinity" ($pod.affinity | default $spec.affinity)
  "tolerations" ($pod.tolerations | default $spec.tolerations)
  "topologySpreadConstraints" $pod.topologySpreadConstraints
  "priorityClassName" $pod.priorityClassName
  "terminationGracePeriodSeconds" $pod.terminationGracePeriodSeconds
  "schedulerName" $pod.schedulerName
  "hostAliases" $pod.hostAliases
  "dnsPolicy" $pod.dnsPolicy
  "dnsConfig" $pod.dnsConfig
  "hostUsers" $pod.hostUsers
  "enableServiceLinks" $pod.enableServiceLinks
  "podSecurityContext" $pod.securityContext
  "securityContext" $container.securityContext
  "podLabels" $metadata.labels
  "podAnnotations" $metadata.annotations
  "imagePullSecrets" $pod.imagePullSecrets
  "env" (concat ($external.env | default list) ($container.env | default list))
  "volumes" ($pod.volumes | default list)
  "volumeMounts" ($container.volumeMounts | default list)
  "livenessProbe" $spec.livenessProbe
  "readinessProbe" $spec.readinessProbe
-}}
{{- $ours := ternary "deployment" "podSet" (hasKey $template "deployment") -}}
{{- $workload := ((get $template $ours) | default dict) -}}
{{- $_ := set $found "labels" ($workload.metadata | default dict).labels -}}
{{- $_ := set $found "annotations" ($workload.metadata | default dict).annotations -}}
{{- $budget := $template.podDisruptionBudget | default dict -}}
{{- if not (kindIs "invalid" $budget.maxUnavailable) -}}
{{- $_ := set $found "podDisruptionBudget" (dict "maxUnavailable" $budget.maxUnavailable) -}}
{{- end -}}
{{- if eq .service "dataPlane" -}}
{{- $_ := set $found "resources" $spec.resources -}}
{{- else -}}
{{- $_ := set $found "tmpSizeLimit" $pod.tmpDirSizeLimit -}}
{{- $strategy := ($template.deployment | default dict).deploymentStrategy -}}
{{- if $strategy -}}{{- $_ := set $found "strategy" (dict "type" $strategy) -}}{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/*
The settings of `service` for `flow`, as JSON. What is said later counts; mappings of labels, annotations, probes,
selectors and security contexts are joined key by key (null takes a key away), lists of extra things grow, everything
else (resources, affinity, strategy, tolerations ...) is taken whole. Empty means: not said.
*/}}
{{- define "lockstep.service" -}}
{{- $root := .root -}}
{{- $joined := list "podLabels" "podAnnotations" "labels" "annotations" "nodeSelector" "podSecurityContext" "securityContext" "livenessProbe" "readinessProbe" "startupProbe" "podDisruptionBudget" -}}
{{- $growing := list "extraArgs" "extraEnv" "extraEnvFrom" "extraVolumes" "extraVolumeMounts" "imagePullSecrets" -}}
{{- $ofFlow := get (get ($root.Values.flows | default dict) .flow.name | default dict) .service | default dict -}}
{{- $resource := include "lockstep.ofResource" . | fromJson -}}
{{- $kind := ternary .service "control" (has .service (list "dataPlane" "console")) -}}
{{- $defaults := dict "enabled" true "resources" (get $root.Values.defaultResources $kind) -}}
{{- $own := ternary (omit $root.Values.console "tokenSecret" "trustHeader" "anonymousRead" "clients" "service" "url") (get $root.Values.services .service) (eq .service "console") -}}
{{- $found := dict -}}
{{- range $layer := list $defaults $root.Values.common $resource ($own | default dict) $ofFlow -}}
{{- range $key, $value := $layer -}}
{{- if or (kindIs "invalid" $value) (and (kindIs "string" $value) (empty $value)) -}}
{{- else if and (kindIs "map" $value) (has $key $joined) -}}
{{- $whole := deepCopy (get $found $key | default dict) -}}
{{- range $k, $v := $value -}}
{{- if kindIs "invalid" $v -}}{{- $_ := unset $whole $k -}}{{- else -}}{{- $_ := set $whole $k $v -}}{{- end -}}
{{- end -}}
{{- $_ := set $found $key $whole -}}
{{- else if has $key $growing -}}
{{- $_ := set $found $key (concat (get $found $key | default list) $value) -}}
{{- else if and (or (kindIs "map" $value) (kindIs "slice" $value)) (empty $value) -}}
{{- else -}}
{{- $_ := set $found $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}
