{{/*
What the chart adds to the resource, as lines of a properties file (--settings), which win over it: where the data
plane's slots run, its JVMs, the rack, and the user's own `settings`, which win over everything.
*/}}

{{/* A key or a value as Java's properties have it. */}}
{{- define "lockstep.propertyKey" -}}
{{- . | replace "\\" "\\\\" | replace ":" "\\:" | replace "=" "\\=" | replace " " "\\ " | replace "#" "\\#" -}}
{{- end -}}
{{- define "lockstep.propertyValue" -}}
{{- $escaped := toString . | replace "\\" "\\\\" | replace "\r" "\\r" | replace "\n" "\\n" | replace "\t" "\\t" -}}
{{- regexReplaceAll "^ " $escaped "\\ " -}}
{{- end -}}

{{/* A value of `settings`: numbers as they are written, never as 1e+06. */}}
{{- define "lockstep.scalar" -}}
{{- if kindIs "float64" . -}}
{{- if eq (floor .) . -}}{{- int64 . -}}{{- else -}}{{- . -}}{{- end -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{/* The lines for a workload, as JSON: key to value. Only the data plane has more than the user's own. */}}
{{- define "lockstep.settings" -}}
{{- $found := dict -}}
{{- if eq .w.service "dataPlane" -}}
{{- /* What is Spark's an operator is told (_spark_application.tpl), and writes it for the driver itself. */ -}}
{{- $parts := list "lockstep.slotSettings" "lockstep.rackSettings" -}}
{{- if not (include "lockstep.operated" .root) -}}{{- $parts = append $parts "lockstep.jvmSettings" -}}{{- end -}}
{{- if include "lockstep.asksForExecutors" .root -}}{{- $parts = append $parts "lockstep.sparkSettings" -}}{{- end -}}
{{- $given := . -}}
{{- range $part := $parts -}}
{{- range $key, $value := include $part $given | fromJson -}}{{- $_ := set $found $key $value -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- range $key, $value := .root.Values.settings -}}{{- $_ := set $found $key (include "lockstep.scalar" $value) -}}{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/* The key of the ConfigMap with the lines of a workload. */}}
{{- define "lockstep.settingsFile" -}}
{{- if eq .service "dataPlane" -}}data-plane-{{ .flow.id }}.properties{{- else -}}lockstep.properties{{- end -}}
{{- end -}}

{{/* Lines as the text of a properties file. */}}
{{- define "lockstep.properties" -}}
# Added by the chart. What stands here counts before mirror.yaml.
{{- range $key, $value := . }}
{{ include "lockstep.propertyKey" $key }}={{ include "lockstep.propertyValue" $value }}
{{- end }}
{{- end -}}

{{/*
spec.jvmOptions, for the driver's JVM and the executors'. The heap has a setting of Spark's own, which refuses -Xmx among
the options; the options stand before Lockstep's own, which stay.
*/}}
{{- define "lockstep.jvmSettings" -}}
{{- $jvm := .root.Values.spec.jvmOptions | default dict -}}
{{- $options := list -}}
{{- with get $jvm "-Xms" -}}{{- $options = append $options (printf "-Xms%s" (include "lockstep.scalar" .)) -}}{{- end -}}
{{- range $name, $value := get $jvm "-XX" | default dict -}}
{{- if has (toString $value) (list "true" "false") -}}
{{- $options = append $options (printf "-XX:%s%s" (ternary "+" "-" (eq (toString $value) "true")) $name) -}}
{{- else -}}
{{- $options = append $options (printf "-XX:%s=%s" $name (include "lockstep.scalar" $value)) -}}
{{- end -}}
{{- end -}}
{{- range $jvm.javaSystemProperties -}}
{{- $pair := printf "-D%s=%s" .name (include "lockstep.scalar" .value) -}}
{{- $options = append $options (ternary (printf "\"%s\"" ($pair | replace "\\" "\\\\" | replace "\"" "\\\"")) $pair (regexMatch "[\\s\"'\\\\]" $pair)) -}}
{{- end -}}
{{- if eq (toString $jvm.gcLoggingEnabled) "true" -}}{{- $options = append $options "-Xlog:gc*:stdout:time" -}}{{- end -}}
{{- $found := dict -}}
{{- $sides := list "driver" -}}
{{- if gt (int .root.Values.dataPlane.executors) 0 -}}{{- $sides = append $sides "executor" -}}{{- end -}}
{{- range $side := $sides -}}
{{- with get $jvm "-Xmx" -}}{{- $_ := set $found (printf "lockstep.spark.conf.spark.%s.memory" $side) (include "lockstep.sparkMemory" .) -}}{{- end -}}
{{- if $options -}}{{- $_ := set $found (printf "lockstep.spark.conf.spark.%s.defaultJavaOptions" $side) (join " " $options) -}}{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/* A JVM's heap size as Spark writes it: a number alone is bytes to a JVM. */}}
{{- define "lockstep.sparkMemory" -}}
{{- $text := toString . | lower | trim -}}
{{- if regexMatch "^[0-9.e+]+$" $text -}}{{- printf "%dk" (div (include "lockstep.scalar" . | int64) 1024) -}}{{- else -}}{{- $text -}}{{- end -}}
{{- end -}}

{{/*
The whole number of the first of `steps` that is there: keys of `settings`, or mappings with what is `given` and its
`name`. Both can hold references, which only the loader can follow: of those the chart cannot count anything.
*/}}
{{- define "lockstep.count" -}}
{{- $found := "" -}}{{- $name := "" -}}
{{- range .steps -}}
{{- if not (empty $found) -}}
{{- else if kindIs "map" . -}}
{{- with .given -}}{{- $found = include "lockstep.scalar" . | trim -}}{{- end -}}
{{- $name = .name -}}
{{- else if hasKey $.settings . -}}
{{- $found = include "lockstep.scalar" (get $.settings .) | trim -}}
{{- $name = printf "settings has %s" . -}}
{{- end -}}
{{- end -}}
{{- if not (regexMatch "^[0-9]+$" $found) -}}
{{- fail (printf "lockstep: %s=%s, of which the chart cannot tell how many cores an executor needs: write a number, or give lockstep.spark.conf.spark.executor.cores in settings" $name $found) -}}
{{- end -}}
{{- $found -}}
{{- end -}}

{{/*
How many slots a flow has: tasksMax, else dataPlane.slots, unless `settings` say it, in the order in which the loader reads
them. One per core of the node, as outside of Kubernetes, would be more than the pod has.
*/}}
{{- define "lockstep.slots" -}}
{{- $own := printf "%s.lockstep.connector.source.tasks.max" .flow.name -}}
{{- $ofFlow := printf "%s.tasks.max" .flow.name -}}
{{- $steps := list -}}
{{- if .flow.legacy -}}
{{- $given := (.root.Values.spec.consumer | default dict).numStreams -}}
{{- $steps = list $own $ofFlow (dict "given" $given) "tasks.max" (dict "given" 1) -}}
{{- else -}}
{{- $given := (.flow.mirror.sourceConnector | default dict).tasksMax -}}
{{- $steps = list $own (dict "given" $given) $ofFlow "tasks.max" (dict "given" (.root.Values.dataPlane.slots | default 2)) -}}
{{- end -}}
{{- include "lockstep.count" (dict "settings" .root.Values.settings "steps" $steps) -}}
{{- end -}}

{{/* How many slots of a flow compare: lockstep.verify.tasks.max, which any connector of the resource can have. */}}
{{- define "lockstep.verifySlots" -}}
{{- $key := "lockstep.verify.tasks.max" -}}
{{- $given := "" -}}
{{- range $connector := list "sourceConnector" "checkpointConnector" "heartbeatConnector" -}}
{{- $config := include "lockstep.connectorConfig" (dict "mirror" $.flow.mirror "connector" $connector) | fromJson -}}
{{- $given = $given | default (get $config $key) -}}
{{- end -}}
{{- $steps := list (printf "%s.%s" .flow.name $key) (dict "given" $given "name" (printf "the resource has %s" $key)) $key (dict "given" 1) -}}
{{- include "lockstep.count" (dict "settings" .root.Values.settings "steps" $steps) -}}
{{- end -}}

{{/* The slots of a flow of which neither the resource nor `settings` say how many. */}}
{{- define "lockstep.slotSettings" -}}
{{- $found := dict -}}
{{- $own := printf "%s.lockstep.connector.source.tasks.max" .w.flow.name -}}
{{- $said := (.w.flow.mirror.sourceConnector | default dict).tasksMax -}}
{{- range $key := list $own (printf "%s.tasks.max" .w.flow.name) "tasks.max" -}}
{{- if hasKey $.root.Values.settings $key -}}{{- $said = true -}}{{- end -}}
{{- end -}}
{{- if not (or .w.flow.legacy $said) -}}
{{- $_ := set $found $own (include "lockstep.slots" (dict "root" .root "flow" .w.flow)) -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/* The replica that is read is the one in the rack of the pod's node; what the resource or `settings` say counts. */}}
{{- define "lockstep.rackSettings" -}}
{{- $found := dict -}}
{{- $rack := .root.Values.spec.rack | default dict -}}
{{- $key := printf "%s.consumer.client.rack" .w.flow.source -}}
{{- $config := include "lockstep.connectorConfig" (dict "mirror" .w.flow.mirror "connector" "sourceConnector") | fromJson -}}
{{- if not (or (hasKey $config "consumer.client.rack") (hasKey $config "source.consumer.client.rack") (hasKey .root.Values.settings (printf "%s.consumer.client.rack" .w.flow.name))) -}}
{{- if include "lockstep.rackInit" .root -}}
{{- $_ := set $found $key "${file:/etc/lockstep/rack/rack.properties:rack}" -}}
{{- else if and (eq (toString $rack.type) "environment-variable") $rack.envVarName -}}
{{- $_ := set $found $key (printf "${env:%s}" $rack.envVarName) -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}
