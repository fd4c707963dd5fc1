{{/* What would be refused later anyway, said at once in a sentence. Prints nothing. */}}
{{- define "lockstep.check" -}}
{{- $v := .Values -}}
{{- /* A null takes the chart's own empty mapping away. */ -}}
{{- range $field := list "metadata" "spec" "settings" "flows" -}}
{{- if not (get $v $field) -}}{{- $_ := set $v $field dict -}}{{- end -}}
{{- end -}}
{{- if and $v.kind (not (has $v.kind (list "KafkaMirrorMaker2" "KafkaMirrorMaker"))) -}}
{{- fail (printf "lockstep: kind is %q: it takes KafkaMirrorMaker2 or KafkaMirrorMaker. Of a file with several documents Helm reads the first one alone, and no List: lockstep config convert FILE --to resource prints the one that is meant" $v.kind) -}}
{{- end -}}
{{- if not (and $v.kind $v.spec) -}}
{{- fail "lockstep: nothing to mirror: give a KafkaMirrorMaker2 or KafkaMirrorMaker resource of Strimzi as values (-f my-mirror-maker-2.yaml); it is used as it is. Of a file with several documents Helm reads the first one alone" -}}
{{- end -}}
{{- /* `helm lint` goes on behind a `fail`, so there may be no kind here. */ -}}
{{- $versions := get (dict "KafkaMirrorMaker2" (list "v1alpha1" "v1beta2" "v1") "KafkaMirrorMaker" (list "v1alpha1" "v1beta1" "v1beta2")) (toString $v.kind) | default list -}}
{{- $known := list "eventstreams.ibm.com/v1beta1" -}}
{{- range $group := list "kafka.strimzi.io" "eventstreams.ibm.com" "ibmevents.ibm.com" -}}
{{- range $versions -}}{{- $known = append $known (printf "%s/%s" $group .) -}}{{- end -}}
{{- end -}}
{{- if not (has (toString $v.apiVersion) $known) -}}
{{- fail (printf "lockstep: apiVersion is %q: %s has kafka.strimzi.io/%s, and the same of eventstreams.ibm.com and ibmevents.ibm.com" (toString $v.apiVersion) $v.kind (join ", kafka.strimzi.io/" $versions)) -}}
{{- end -}}
{{- include "lockstep.namesAsTexts" $v.spec -}}
{{- if and (hasKey $v.spec "replicas") (not (kindIs "invalid" $v.spec.replicas)) -}}
{{- if lt (int $v.spec.replicas) 1 -}}
{{- fail (printf "lockstep: spec.replicas is %v, so nothing would run: set it to 1 or more here (--set spec.replicas=1); 0 is what stops Strimzi's MirrorMaker before a takeover" $v.spec.replicas) -}}
{{- end -}}
{{- end -}}
{{- if eq $v.kind "KafkaMirrorMaker2" -}}{{- include "lockstep.checkMirrors" . -}}{{- else -}}{{- include "lockstep.checkLegacy" . -}}{{- end -}}
{{- include "lockstep.checkFlows" . -}}
{{- include "lockstep.checkReferences" . -}}
{{- include "lockstep.checkInlineSecrets" . -}}
{{- include "lockstep.checkMonitoring" . -}}
{{- include "lockstep.checkConsole" . -}}
{{- if and (include "lockstep.operated" .) (lt (int $v.dataPlane.executors) 1) -}}
{{- fail "lockstep: dataPlane.sparkApplication.enabled needs executors: set dataPlane.executors to 1 or more, for with 0 the slots run in the data plane's own pod and the Spark operator would have nothing to do" -}}
{{- end -}}
{{- end -}}

{{/* Aliases and the version are texts to the services also where YAML takes them for numbers; 4 is what it makes of 4.0. */}}
{{- define "lockstep.namesAsTexts" -}}
{{- $spec := . -}}
{{- if has (kindOf $spec.version) (list "float64" "int" "int64") -}}
{{- $short := toString $spec.version -}}
{{- $_ := set $spec "version" (ternary $short (printf "%s.0" $short) (contains "." $short)) -}}
{{- end -}}
{{- include "lockstep.numberAsText" (dict "node" $spec "keys" (list "connectCluster")) -}}
{{- include "lockstep.numberAsText" (dict "node" $spec.target "keys" (list "alias")) -}}
{{- range $spec.clusters -}}{{- include "lockstep.numberAsText" (dict "node" . "keys" (list "alias")) -}}{{- end -}}
{{- range $spec.mirrors -}}
{{- include "lockstep.numberAsText" (dict "node" . "keys" (list "sourceCluster" "targetCluster")) -}}
{{- include "lockstep.numberAsText" (dict "node" .source "keys" (list "alias")) -}}
{{- end -}}
{{- end -}}

{{- define "lockstep.numberAsText" -}}
{{- if kindIs "map" .node -}}
{{- range $key := .keys -}}
{{- $value := get $.node $key -}}
{{- if has (kindOf $value) (list "float64" "int" "int64") -}}{{- $_ := set $.node $key (include "lockstep.scalar" $value) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "lockstep.checkMirrors" -}}
{{- $spec := .Values.spec -}}
{{- if not $spec.mirrors -}}
{{- fail "lockstep: spec.mirrors is missing or empty: it lists the flows, each with a source, a target and its connectors" -}}
{{- end -}}
{{- $aliases := list -}}
{{- if not (hasKey $spec "target") -}}
{{- if not $spec.clusters -}}
{{- fail "lockstep: spec.clusters is missing or empty: it lists the clusters, each with alias and bootstrapServers (in v1: spec.target, and a source in each mirror)" -}}
{{- end -}}
{{- range $spec.clusters -}}{{- $aliases = append $aliases (.alias | default "") -}}{{- end -}}
{{- end -}}
{{- $seen := dict -}}
{{- range $index, $mirror := $spec.mirrors -}}
{{- $source := $mirror.sourceCluster -}}{{- $target := $mirror.targetCluster -}}
{{- if hasKey $spec "target" -}}
{{- $source = ($mirror.source | default dict).alias -}}{{- $target = ($spec.target | default dict).alias -}}
{{- if not $source -}}{{- fail (printf "lockstep: spec.mirrors[%d].source.alias is missing: it names the cluster that is mirrored" $index) -}}{{- end -}}
{{- if not $target -}}{{- fail "lockstep: spec.target.alias is missing: it names the target of all mirrors" -}}{{- end -}}
{{- else -}}
{{- range $field := list "sourceCluster" "targetCluster" -}}
{{- $alias := get $mirror $field -}}
{{- if not $alias -}}{{- fail (printf "lockstep: spec.mirrors[%d].%s is missing: it names a cluster of spec.clusters (%s)" $index $field (join ", " $aliases)) -}}{{- end -}}
{{- if not (has $alias $aliases) -}}
{{- fail (printf "lockstep: spec.mirrors[%d].%s is %q, which is not in spec.clusters (%s)" $index $field $alias (join ", " $aliases)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq $source $target -}}{{- fail (printf "lockstep: spec.mirrors[%d] leads from %s to itself: it needs two clusters" $index $source) -}}{{- end -}}
{{- $name := printf "%s->%s" $source $target -}}
{{- if hasKey $seen $name -}}
{{- fail (printf "lockstep: spec.mirrors[%d] mirrors %s again, after spec.mirrors[%v]: keep one" $index $name (get $seen $name)) -}}
{{- end -}}
{{- $_ := set $seen $name $index -}}
{{- end -}}
{{- end -}}

{{- define "lockstep.checkLegacy" -}}
{{- range $side := list "consumer" "producer" -}}
{{- if not ((get $.Values.spec $side | default dict).bootstrapServers) -}}
{{- fail (printf "lockstep: spec.%s.bootstrapServers is missing: it says where the %s is" $side (ternary "source" "target" (eq $side "consumer"))) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* `flows` names flows of the resource. */}}
{{- define "lockstep.checkFlows" -}}
{{- $names := list -}}
{{- range (include "lockstep.flows" . | fromJson).flows -}}{{- $names = append $names .name -}}{{- end -}}
{{- range $name, $_ := .Values.flows -}}
{{- if not (has $name $names) -}}
{{- fail (printf "lockstep: flows has %q, which is no flow of the resource (%s)" $name (join ", " $names)) -}}
{{- end -}}
{{- end -}}
{{- range $field := list "livenessProbe" "readinessProbe" -}}
{{- $probe := get $.Values.spec $field | default dict -}}
{{- if and (eq $field "livenessProbe") (not (has (int ($probe.successThreshold | default 1)) (list 1))) -}}
{{- fail (printf "lockstep: spec.livenessProbe.successThreshold is %v: Kubernetes allows 1 only" $probe.successThreshold) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Pods can mount secrets and config maps of their own namespace only. */}}
{{- define "lockstep.checkReferences" -}}
{{- $own := .Release.Namespace -}}
{{- range (include "lockstep.references" . | fromJson).references -}}
{{- if and .namespace (ne .namespace $own) -}}
{{- fail (printf "lockstep: %s refers to the %s %q of the namespace %q, but the release is in %q, and pods can only mount what is in theirs: copy it there and write %q, or install in %q" .text .what .name .namespace $own .name .namespace) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "lockstep.checkMonitoring" -}}
{{- $metrics := .Values.metrics -}}
{{- if and $metrics.podMonitor.enabled $metrics.serviceMonitor.enabled -}}
{{- fail "lockstep: metrics.podMonitor and metrics.serviceMonitor are both enabled: every sample would count twice; keep one" -}}
{{- end -}}
{{- end -}}
