{{/* What NOTES name: fields of the resource that have no counterpart here, and what may surprise. */}}

{{/* As JSON: {"unused": ["FIELD: why", ...]}. */}}
{{- define "lockstep.unused" -}}
{{- $spec := .Values.spec -}}
{{- $template := $spec.template | default dict -}}
{{- $found := list -}}
{{- range $field, $why := dict
  "image" "it is an image of Kafka Connect; images.* says where Lockstep's are"
  "clientRackInitImage" "images.cli reads the rack"
  "jmxOptions" "there is no JMX here"
  "metrics" "JMX rules are not applied; metrics are always on 9404, under MirrorMaker's and Strimzi's names"
  "metricsConfig" "JMX rules are not applied; metrics are always on 9404, under MirrorMaker's and Strimzi's names"
-}}
{{- if and (hasKey $spec $field) (not (kindIs "invalid" (get $spec $field))) -}}{{- $found = append $found (printf "spec.%s: %s" $field $why) -}}{{- end -}}
{{- end -}}
{{- range $field, $why := dict
  "apiService" "the console has a part of Connect's REST API (console.enabled)"
  "jmxSecret" "there is no JMX here"
  "buildPod" "nothing is built"
  "buildContainer" "nothing is built"
  "buildConfig" "nothing is built"
  "buildServiceAccount" "nothing is built"
-}}
{{- if and (hasKey $template $field) (not (kindIs "invalid" (get $template $field))) -}}{{- $found = append $found (printf "spec.template.%s: %s" $field $why) -}}{{- end -}}
{{- end -}}
{{- if and (not .Values.spec.rack) $template.initContainer -}}
{{- $found = append $found "spec.template.initContainer: there is none without spec.rack" -}}
{{- end -}}
{{- if and ($template.pod | default dict).tmpDirSizeLimit -}}
{{- $found = append $found "spec.template.pod.tmpDirSizeLimit: of the data plane; Spark needs more (services.dataPlane.tmpSizeLimit)" -}}
{{- end -}}
{{- $metadata := .Values.metadata -}}
{{- range $key, $_ := merge dict ($metadata.annotations | default dict) ($metadata.labels | default dict) -}}
{{- if regexMatch "^(.*\\.)?strimzi\\.io/" $key -}}
{{- $found = append $found (printf "metadata: %s: it is for Strimzi's operator" $key) -}}
{{- end -}}
{{- end -}}
{{- dict "unused" ($found | sortAlpha) | toJson -}}
{{- end -}}

{{/* As JSON: {"remarks": [...]}. */}}
{{- define "lockstep.remarks" -}}
{{- $spec := .Values.spec -}}
{{- $found := list -}}
{{- $namespace := .Values.metadata.namespace -}}
{{- if and $namespace (ne $namespace .Release.Namespace) -}}
{{- $found = append $found (printf "The resource is of the namespace %s; everything, its secrets too, is looked for in %s." $namespace .Release.Namespace) -}}
{{- end -}}
{{- if and (gt (int .Values.dataPlane.executors) 0) (gt (int ($spec.replicas | default 1)) 1) -}}
{{- $found = append $found "spec.replicas: with executors the data plane has no standby driver, for it would have executors of its own; services.dataPlane.replicas=2 asks for one." -}}
{{- else if gt (int ($spec.replicas | default 1)) 2 -}}
{{- $found = append $found (printf "spec.replicas is %v: the data plane has one driver and one standby; slots are what it grows by (tasksMax), and dataPlane.executors." $spec.replicas) -}}
{{- end -}}
{{- if and (gt (int .Values.dataPlane.executors) 0) (include "lockstep.rackInit" .) -}}
{{- $found = append $found "spec.rack: executors read from the replica in the rack of their driver's node, wherever they are themselves." -}}
{{- end -}}
{{- $grace := (($spec.template | default dict).pod | default dict).terminationGracePeriodSeconds -}}
{{- if and (not (kindIs "invalid" $grace)) (lt (int $grace) 12) -}}
{{- $found = append $found (printf "terminationGracePeriodSeconds is %v: draining takes up to ten seconds; nothing is lost by less, but the next start has more to find out." $grace) -}}
{{- end -}}
{{- if eq (toString (($spec.tracing | default dict).type)) "jaeger" -}}
{{- $found = append $found "spec.tracing.type is jaeger: only opentelemetry is spoken; nothing is traced." -}}
{{- end -}}
{{- dict "remarks" $found | toJson -}}
{{- end -}}
