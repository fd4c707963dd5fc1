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

{{/* All lines, as JSON: key to value. */}}
{{- define "lockstep.settings" -}}
{{- $found := dict -}}
{{- range $key, $value := include "lockstep.jvmSettings" . | fromJson -}}{{- $_ := set $found $key $value -}}{{- end -}}
{{- range $key, $value := include "lockstep.slotSettings" . | fromJson -}}{{- $_ := set $found $key $value -}}{{- end -}}
{{- range $key, $value := include "lockstep.rackSettings" . | fromJson -}}{{- $_ := set $found $key $value -}}{{- end -}}
{{- range $key, $value := .Values.settings -}}{{- $_ := set $found $key (include "lockstep.scalar" $value) -}}{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/*
spec.jvmOptions, for the driver's JVM and the executors'. The heap has a setting of Spark's own, which refuses -Xmx among
the options; the options stand before Lockstep's own, which stay.
*/}}
{{- define "lockstep.jvmSettings" -}}
{{- $jvm := (.Values.spec | default dict).jvmOptions | default dict -}}
{{- $options := list -}}
{{- with get $jvm "-Xms" -}}{{- $options = append $options (printf "-Xms%v" .) -}}{{- end -}}
{{- range $name, $value := get $jvm "-XX" | default dict -}}
{{- if has (toString $value) (list "true" "false") -}}
{{- $options = append $options (printf "-XX:%s%s" (ternary "+" "-" (eq (toString $value) "true")) $name) -}}
{{- else -}}
{{- $options = append $options (printf "-XX:%s=%s" $name (include "lockstep.scalar" $value)) -}}
{{- end -}}
{{- end -}}
{{- range $jvm.javaSystemProperties -}}
{{- $pair := printf "-D%s=%s" .name (toString .value) -}}
{{- $options = append $options (ternary (printf "\"%s\"" ($pair | replace "\\" "\\\\" | replace "\"" "\\\"")) $pair (regexMatch "[\\s\"'\\\\]" $pair)) -}}
{{- end -}}
{{- if eq (toString $jvm.gcLoggingEnabled) "true" -}}{{- $options = append $options "-Xlog:gc*:stdout:time" -}}{{- end -}}
{{- $found := dict -}}
{{- $sides := list "driver" -}}
{{- if gt (int .Values.dataPlane.executors) 0 -}}{{- $sides = append $sides "executor" -}}{{- end -}}
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

{{/* How many slots a flow has: tasksMax, else dataPlane.slots. One per core of the node, as outside of Kubernetes, would be more than the pod has. */}}
{{- define "lockstep.slots" -}}
{{- $connector := .flow.mirror.sourceConnector | default dict -}}
{{- $legacy := dig "consumer" "numStreams" 1 (.root.Values.spec | default dict) -}}
{{- if .flow.legacy -}}{{- $legacy | int -}}{{- else -}}{{- $connector.tasksMax | default .root.Values.dataPlane.slots | int -}}{{- end -}}
{{- end -}}

{{/* Slots of the flows that do not say how many. */}}
{{- define "lockstep.slotSettings" -}}
{{- $root := . -}}
{{- $found := dict -}}
{{- range $flow := (include "lockstep.flows" . | fromJson).flows -}}
{{- if and $flow.needs.dataPlane (not $flow.legacy) -}}
{{- if not ($flow.mirror.sourceConnector | default dict).tasksMax -}}
{{- $_ := set $found (printf "%s.lockstep.connector.source.tasks.max" $flow.name) (include "lockstep.slots" (dict "root" $root "flow" $flow)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{- define "lockstep.rackSettings" -}}
{{- toJson dict -}}
{{- end -}}
