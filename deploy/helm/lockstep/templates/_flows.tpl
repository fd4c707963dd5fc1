{{/*
The flows of the resource and which services each needs. Nothing else of the resource is understood here: what it means
is the configuration loader's matter, which reads it from the ConfigMap. The rules are those of the services' own
commands (`__main__` of each), and a test holds them against the loader's.
*/}}

{{/* Whether a value of a resource says no: false, or the text. */}}
{{- define "lockstep.no" -}}
{{- if and (not (kindIs "invalid" .)) (eq (toString . | lower) "false") -}}no{{- end -}}
{{- end -}}

{{/*
"no" where a switch of a flow is off. `key` in `settings` counts first, behind the flow's name, then what the resource
says (`said`, the configs in which the switch may stand), then `key` in `settings` alone, then `default`.
*/}}
{{- define "lockstep.off" -}}
{{- $flowKey := printf "%s.%s" .flow .key -}}
{{- $verdict := "" -}}
{{- if hasKey .settings $flowKey -}}
{{- $verdict = ternary "no" "yes" (eq (include "lockstep.no" (get .settings $flowKey)) "no") -}}
{{- end -}}
{{- $key := .key -}}
{{- range .said -}}
{{- if and (not $verdict) (hasKey . $key) -}}
{{- $verdict = ternary "no" "yes" (eq (include "lockstep.no" (get . $key)) "no") -}}
{{- end -}}
{{- end -}}
{{- if and (not $verdict) (hasKey .settings .key) -}}
{{- $verdict = ternary "no" "yes" (eq (include "lockstep.no" (get .settings .key)) "no") -}}
{{- end -}}
{{- $verdict | default .default -}}
{{- end -}}

{{/* The config of a connector of a mirror: a mapping, empty where there is none. */}}
{{- define "lockstep.connectorConfig" -}}
{{- $connector := get .mirror .connector -}}
{{- $config := dict -}}
{{- if kindIs "map" $connector -}}
{{- if kindIs "map" $connector.config -}}{{- $config = $connector.config -}}{{- end -}}
{{- end -}}
{{- toJson $config -}}
{{- end -}}

{{/* A KafkaMirrorMaker2's mirror: which services it needs, as JSON. A connector that is absent needs none. */}}
{{- define "lockstep.needsOfMirror" -}}
{{- $flow := .flow -}}{{- $settings := .settings -}}{{- $mirror := .mirror -}}
{{- $configs := dict -}}{{- $runs := dict -}}
{{- range $name, $field := dict "source" "sourceConnector" "checkpoint" "checkpointConnector" "heartbeat" "heartbeatConnector" -}}
{{- $config := include "lockstep.connectorConfig" (dict "mirror" $mirror "connector" $field) | fromJson -}}
{{- $_ := set $configs $name $config -}}
{{- $own := printf "lockstep.connector.%s.enabled" $name -}}
{{- $said := dict -}}
{{- if and (hasKey $config "enabled") (ne $name "heartbeat") -}}{{- $_ := set $said $own $config.enabled -}}{{- end -}}
{{- $off := include "lockstep.off" (dict "flow" $flow "settings" $settings "key" $own "said" (list $said) "default" "yes") -}}
{{- $_ := set $runs $name (and (kindIs "map" (get $mirror $field)) (ne $off "no")) -}}
{{- end -}}
{{- $acls := include "lockstep.off" (dict "flow" $flow "settings" $settings "key" "sync.topic.acls.enabled" "said" (list $configs.source) "default" "yes") -}}
{{- $syncs := include "lockstep.off" (dict "flow" $flow "settings" $settings "key" "emit.offset-syncs.enabled" "said" (list $configs.source $configs.checkpoint) "default" "yes") -}}
{{- $checkpoints := include "lockstep.off" (dict "flow" $flow "settings" $settings "key" "emit.checkpoints.enabled" "said" (list $configs.checkpoint) "default" "yes") -}}
{{- $heartbeats := include "lockstep.off" (dict "flow" $flow "settings" $settings "key" "emit.heartbeats.enabled" "said" (list $configs.heartbeat (dict "emit.heartbeats.enabled" true)) "default" "yes") -}}
{{- dict
  "topicSync" $runs.source
  "dataPlane" $runs.source
  "aclSync" (and $runs.source (ne $acls "no"))
  "checkpoint" (and $runs.checkpoint (ne $checkpoints "no") (ne $syncs "no"))
  "heartbeat" (and $runs.heartbeat (ne $heartbeats "no"))
| toJson -}}
{{- end -}}

{{/* A KafkaMirrorMaker's only flow: what MirrorMaker 1 does not do is off unless `settings` turn it on. */}}
{{- define "lockstep.needsOfLegacy" -}}
{{- $flow := .flow -}}{{- $settings := .settings -}}
{{- $on := dict -}}
{{- range $key := list "sync.topic.acls.enabled" "emit.checkpoints.enabled" "emit.heartbeats.enabled" -}}
{{- $_ := set $on $key (eq "yes" (include "lockstep.off" (dict "flow" $flow "settings" $settings "key" $key "said" list "default" "no"))) -}}
{{- end -}}
{{- $syncs := include "lockstep.off" (dict "flow" $flow "settings" $settings "key" "emit.offset-syncs.enabled" "said" list "default" "yes") -}}
{{- dict
  "topicSync" true
  "dataPlane" true
  "aclSync" (get $on "sync.topic.acls.enabled")
  "checkpoint" (and (get $on "emit.checkpoints.enabled") (ne $syncs "no"))
  "heartbeat" (get $on "emit.heartbeats.enabled")
| toJson -}}
{{- end -}}

{{/* A flow's name as part of Kubernetes' names. */}}
{{- define "lockstep.slug" -}}
{{- printf "%s-to-%s" .source .target | lower | replace "_" "-" | trimAll "-" -}}
{{- end -}}

{{/*
The flows, as JSON: {"flows": [...]}, each with `name` ('A->B'), `source`, `target`, `id` (unique, for names), `mirror`
(as in the resource), `legacy`, and `needs` (service: whether it has anything to do).
*/}}
{{- define "lockstep.flows" -}}
{{- $spec := .Values.spec -}}
{{- $settings := .Values.settings | default dict -}}
{{- $found := list -}}
{{- if eq .Values.kind "KafkaMirrorMaker" -}}
{{- $needs := include "lockstep.needsOfLegacy" (dict "flow" "source->target" "settings" $settings) | fromJson -}}
{{- $found = append $found (dict "name" "source->target" "source" "source" "target" "target" "mirror" dict "legacy" true "needs" $needs) -}}
{{- else -}}
{{- range $mirror := $spec.mirrors -}}
{{- $source := $mirror.sourceCluster | default "" -}}
{{- $target := $mirror.targetCluster | default "" -}}
{{- if hasKey $spec "target" -}}
{{- $source = ($mirror.source | default dict).alias | default "" -}}
{{- $target = ($spec.target | default dict).alias | default "" -}}
{{- end -}}
{{- $name := printf "%s->%s" $source $target -}}
{{- $needs := include "lockstep.needsOfMirror" (dict "flow" $name "settings" $settings "mirror" $mirror) | fromJson -}}
{{- $found = append $found (dict "name" $name "source" $source "target" $target "mirror" $mirror "legacy" false "needs" $needs) -}}
{{- end -}}
{{- end -}}
{{- $slugs := list -}}
{{- range $found -}}{{- $slugs = append $slugs (include "lockstep.slug" .) -}}{{- end -}}
{{- $flows := list -}}
{{- range $index, $flow := $found -}}
{{- $slug := index $slugs $index -}}
{{- $same := 0 -}}
{{- range $slugs -}}{{- if eq . $slug -}}{{- $same = add1 $same -}}{{- end -}}{{- end -}}
{{- /* Two flows whose names differ only in what Kubernetes does not allow: both have a hash of their own. */ -}}
{{- $id := ternary (printf "%s-%s" $slug (sha256sum $flow.name | trunc 8)) $slug (gt (int $same) 1) -}}
{{- $_ := set $flow "id" (include "lockstep.short" (dict "name" $id "length" 40)) -}}
{{- $flows = append $flows $flow -}}
{{- end -}}
{{- dict "flows" $flows | toJson -}}
{{- end -}}

{{/*
The workloads, as JSON: {"workloads": [...]}, each with `flow` (as above; empty of the console), `service` (as in values), `kebab`, `name`,
`settings` (lockstep.service) and `replicas`. What is wrong with the values is told first.
*/}}
{{- define "lockstep.workloads" -}}
{{- include "lockstep.check" . -}}
{{- $root := . -}}
{{- $found := list -}}
{{- range $flow := (include "lockstep.flows" . | fromJson).flows -}}
{{- range $service := list "topicSync" "aclSync" "checkpoint" "heartbeat" "dataPlane" -}}
{{- if get $flow.needs $service -}}
{{- $settings := include "lockstep.service" (dict "root" $root "flow" $flow "service" $service) | fromJson -}}
{{- if $settings.enabled -}}
{{- $kebab := include "lockstep.kebab" $service -}}
{{- $name := include "lockstep.workload" (dict "root" $root "flow" $flow "service" $kebab) -}}
{{- $replicas := include "lockstep.replicas" (dict "root" $root "settings" $settings "service" $service "flow" $flow) | int -}}
{{- $found = append $found (dict "flow" $flow "service" $service "kebab" $kebab "name" $name "settings" $settings "replicas" $replicas) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (not $found) (not .Values.extraManifests) -}}
{{- fail "lockstep: nothing would run: no mirror has a sourceConnector, checkpointConnector or heartbeatConnector that is not disabled" -}}
{{- end -}}
{{- /* The console is one for all flows. */ -}}
{{- if .Values.console.enabled -}}
{{- $settings := include "lockstep.service" (dict "root" $root "flow" (dict "name" "") "service" "console") | fromJson -}}
{{- $name := include "lockstep.serviceName" (dict "root" $root "suffix" "console") -}}
{{- $found = append $found (dict "flow" dict "service" "console" "kebab" "console" "name" $name "settings" $settings "replicas" (int ($settings.replicas | default 1))) -}}
{{- end -}}
{{- dict "workloads" $found | toJson -}}
{{- end -}}

{{/* The kind of object that makes the pods of a workload `w`. */}}
{{- define "lockstep.workloadKind" -}}
{{- if ne .w.service "dataPlane" -}}Deployment
{{- else if include "lockstep.operated" .root -}}SparkApplication
{{- else -}}StatefulSet
{{- end -}}
{{- end -}}

{{/*
spec.replicas is of the control services and of the data plane's standby driver: one acts, so a second one is enough.
With executors each driver has executors of its own, and a standby only where it is asked for.
*/}}
{{- define "lockstep.replicas" -}}
{{- $stated := .root.Values.spec.replicas | default 1 | int -}}
{{- if not (kindIs "invalid" .settings.replicas) -}}
{{- if lt (int .settings.replicas) 1 -}}
{{- fail (printf "lockstep: replicas of %s for %s is %v: the least is 1; to run none of it, set services.%s.enabled to false" .service .flow.name .settings.replicas .service) -}}
{{- end -}}
{{- .settings.replicas -}}
{{- else if ne .service "dataPlane" -}}
{{- $stated -}}
{{- else if gt (int .root.Values.dataPlane.executors) 0 -}}
1
{{- else -}}
{{- min $stated 2 -}}
{{- end -}}
{{- end -}}
