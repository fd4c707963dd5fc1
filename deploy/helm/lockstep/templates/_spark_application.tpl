{{/*
dataPlane.sparkApplication: the Apache Spark operator makes the data plane's pod, from what stands here. What runs in it
is the same (docs/decisions/0038).
*/}}

{{/* "yes" where there is one. */}}
{{- define "lockstep.operated" -}}
{{- if .Values.dataPlane.sparkApplication.enabled -}}yes{{- end -}}
{{- end -}}

{{/*
Spark's settings of an application, as JSON: the chart's own, without what the operator writes itself. A setting of the
user's (`settings`) is said here too, for the operator makes pods by some; but not where it refers to something else.
*/}}
{{- define "lockstep.sparkConf" -}}
{{- $root := .root -}}{{- $prefix := "lockstep.spark.conf." -}}
{{- $own := list "spark.driver.host" "spark.kubernetes.executor.podTemplateFile" "spark.kubernetes.namespace" -}}
{{- $found := dict
  "spark.kubernetes.driver.podTemplateContainerName" .w.kebab
  "spark.kubernetes.driver.service.deleteOnTermination" "false"
  "spark.kubernetes.executor.deleteOnTermination" "true"
-}}
{{- $given := . -}}
{{- range $part := list "lockstep.jvmSettings" "lockstep.sparkSettings" -}}
{{- range $key, $value := include $part $given | fromJson -}}
{{- $name := trimPrefix $prefix $key -}}
{{- if and (hasPrefix $prefix $key) (not (has $name $own)) -}}{{- $_ := set $found $name $value -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- /* Spark asks for as much memory as the pod may use. */ -}}
{{- $ownHeap := "512m" -}}
{{- if eq (int $root.Values.dataPlane.executors) 0 -}}{{- $ownHeap = include "lockstep.slotHeap" (dict "root" $root "flow" .w.flow) -}}{{- end -}}
{{- $heap := get $found "spark.driver.memory" | default $ownHeap -}}
{{- $side := dict "side" "driver" "resources" .w.settings.resources "heap" $heap "who" "the data plane" "needs" "Python needs at least 128Mi" -}}
{{- $found = mergeOverwrite $found (include "lockstep.sideSettings" $side | fromJson) -}}
{{- range $key, $value := $root.Values.settings -}}
{{- $name := trimPrefix $prefix $key -}}{{- $text := include "lockstep.scalar" $value -}}
{{- if not (hasPrefix $prefix $key) -}}
{{- else if contains "${" $text -}}{{- $_ := unset $found $name -}}
{{- else -}}{{- $_ := set $found $name $text -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/* The spec of an application. */}}
{{- define "lockstep.sparkApplicationSpec" -}}
{{- $root := .root -}}{{- $w := .w -}}
{{- $executors := int $root.Values.dataPlane.executors -}}
runtimeVersions:
  sparkVersion: "4.3.0"
mainClass: org.apache.spark.deploy.PythonRunner
pyFiles: local:///opt/lockstep/bin/lockstep-data-plane
driverArgs:
  {{- include "lockstep.args" . | nindent 2 }}
sparkConf:
  {{- include "lockstep.sparkConf" . | fromJson | toYaml | nindent 2 }}
driverSpec:
  podTemplateSpec:
    {{- include "lockstep.podTemplate" . | nindent 4 }}
executorSpec:
  podTemplateSpec:
    {{- omit (include "lockstep.executorPod" . | fromYaml) "apiVersion" "kind" | toYaml | nindent 4 }}
applicationTolerations:
  # It never ends, so each end is one to begin again from, however often; Kubernetes' probes are what tells that it is stuck.
  restartConfig:
    restartPolicy: Always
    maxRestartAttempts: 2147483647
    restartBackoffMillis: 2000
  applicationTimeoutConfig:
    driverStartTimeoutMillis: 0
    driverReadyTimeoutMillis: 0
    executorStartTimeoutMillis: 0
    # The operator counts it from when the application began to run well, not from when its end was asked for: after
    # that it ends pods without a grace period.
    forceTerminationGracePeriodMillis: 3153600000000
  instanceConfig:
    initExecutors: {{ $executors }}
    minExecutors: {{ $executors }}
    maxExecutors: {{ $executors }}
{{- end -}}

{{/*
The application of a data plane, `replica` its number. The operator takes no notice of a changed one, so a changed one
has another name: Helm makes it and takes the old one away. 32 characters and a hash, for the operator's own names have
what is left of 46. By the same name its drivers are known in the services' group, one after the other.
*/}}
{{- define "lockstep.sparkApplication" -}}
{{- $root := .root -}}{{- $w := .w -}}{{- $given := $root.Values.dataPlane.sparkApplication -}}
{{- $base := include "lockstep.short" (dict "name" $w.name "length" 32) -}}
{{- $spec := mergeOverwrite (include "lockstep.sparkApplicationSpec" . | fromYaml) ($given.spec | default dict | deepCopy) -}}
{{- $name := printf "%s-%s" $base (list $spec (int .replica) | toJson | sha256sum | trunc 8) -}}
{{- $arguments := list -}}
{{- range $spec.driverArgs -}}{{- $arguments = append $arguments (. | replace "$(POD_NAME)" $name) -}}{{- end -}}
{{- $_ := set $spec "driverArgs" $arguments -}}
apiVersion: spark.apache.org/v1
kind: SparkApplication
metadata:
  {{- include "lockstep.metadata" (dict "root" $root "name" $name "component" $w.kebab "flow" $w.flow "more" (merge dict ($given.labels | default dict) ($w.settings.labels | default dict)) "annotations" $w.settings.annotations) | nindent 2 }}
spec:
  {{- toYaml $spec | nindent 2 }}
{{- end -}}
