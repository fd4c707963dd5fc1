{{/*
dataPlane.executors: Spark on Kubernetes in client mode. The data plane's pod is the driver and asks for its executors
itself; they belong to it, and go with it.
*/}}

{{/* Bytes of a quantity of memory. */}}
{{- define "lockstep.bytes" -}}
{{- $text := include "lockstep.scalar" . -}}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- $unit := regexFind "[A-Za-z]*$" $text -}}
{{- $number := trimSuffix $unit $text -}}
{{- if not (and (hasKey $units $unit) (regexMatch "^[0-9]+(\\.[0-9]+)?$" $number)) -}}
{{- fail (printf "lockstep: %q is no quantity of memory that the executors can be given: write it as 2Gi or 1536Mi" $text) -}}
{{- end -}}
{{- mulf (float64 $number) (get $units $unit) | int64 -}}
{{- end -}}

{{/* Mebibytes of a JVM's heap as Spark writes it (512m, 1g). */}}
{{- define "lockstep.heapMebibytes" -}}
{{- $text := lower . -}}
{{- $number := regexFind "^[0-9]+" $text | int64 -}}
{{- $unit := regexFind "[a-z]+$" $text -}}
{{- if hasPrefix "t" $unit -}}{{- mul $number 1048576 -}}
{{- else if hasPrefix "g" $unit -}}{{- mul $number 1024 -}}
{{- else if hasPrefix "k" $unit -}}{{- div $number 1024 -}}
{{- else -}}{{- $number -}}
{{- end -}}
{{- end -}}

{{/* The service account of the executors: without rights, and without a token. */}}
{{- define "lockstep.executorAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- include "lockstep.short" (dict "name" (printf "%s-executor" (.Values.serviceAccount.name | default (include "lockstep.fullname" .))) "length" 63) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* "yes" where the data plane's own pod asks for executors: there are to be some, and no operator asks for them. */}}
{{- define "lockstep.asksForExecutors" -}}
{{- if and (gt (int .Values.dataPlane.executors) 0) (not (include "lockstep.operated" .)) -}}yes{{- end -}}
{{- end -}}

{{/*
What a pod may use, in Spark's settings, as JSON: `side` driver or executor, `resources` of the pod, `heap` of its JVM as
Spark writes it. Where the memory leaves too little beside the heap, `who` it is and what it `needs` are said.
*/}}
{{- define "lockstep.sideSettings" -}}
{{- $side := .side -}}{{- $who := .who -}}{{- $needs := .needs -}}{{- $heap := .heap -}}
{{- $resources := .resources | default dict -}}
{{- $requests := $resources.requests | default dict -}}{{- $limits := $resources.limits | default dict -}}
{{- $found := dict (printf "spark.%s.memory" $side) $heap -}}
{{- with $requests.cpu -}}{{- $_ := set $found (printf "spark.kubernetes.%s.request.cores" $side) (include "lockstep.scalar" .) -}}{{- end -}}
{{- with $limits.cpu -}}{{- $_ := set $found (printf "spark.kubernetes.%s.limit.cores" $side) (include "lockstep.scalar" .) -}}{{- end -}}
{{- with $limits.memory | default $requests.memory -}}
{{- $whole := div (include "lockstep.bytes" . | int64) 1048576 | int -}}
{{- $beside := sub $whole (include "lockstep.heapMebibytes" $heap | int) | int -}}
{{- if lt $beside 128 -}}
{{- fail (printf "lockstep: %v of memory leave %s %dMi beside its JVM's heap of %s: %s; raise memory or lower -Xmx" . $who $beside $heap $needs) -}}
{{- end -}}
{{- $_ := set $found (printf "spark.%s.memoryOverhead" $side) (printf "%dm" $beside) -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/*
The heap of a JVM with slots as Spark writes it, unless -Xmx says it: as the data plane has it, which counts on more where
a transform of the flow has a statement. `root`, and `flow`.
*/}}
{{- define "lockstep.slotHeap" -}}
{{- $keys := keys (.root.Values.settings | default dict) -}}
{{- range $connector := list "sourceConnector" "checkpointConnector" "heartbeatConnector" -}}
{{- $keys = concat $keys (include "lockstep.connectorConfig" (dict "mirror" $.flow.mirror "connector" $connector) | fromJson | keys) -}}
{{- end -}}
{{- $heap := "512m" -}}
{{- range $key := $keys -}}
{{- $own := trimPrefix "lockstep.connector.source." (trimPrefix (printf "%s." $.flow.name) $key) -}}
{{- if regexMatch "^lockstep\\.transform\\.[^.]+\\.(sql|sql\\.file|mask)$" $own -}}{{- $heap = "768m" -}}{{- end -}}
{{- end -}}
{{- $heap -}}
{{- end -}}

{{/* Spark's settings of one data plane: `w` its workload. */}}
{{- define "lockstep.sparkSettings" -}}
{{- $root := .root -}}{{- $w := .w -}}
{{- $executors := int $root.Values.dataPlane.executors -}}
{{- $resources := $root.Values.dataPlane.executorResources | default $w.settings.resources -}}
{{- $heap := (include "lockstep.jvmSettings" . | fromJson) | default dict -}}
{{- $heap = get $heap "lockstep.spark.conf.spark.executor.memory" | default (include "lockstep.slotHeap" (dict "root" $root "flow" $w.flow)) -}}
{{- $conf := dict
  "spark.kubernetes.container.image" (include "lockstep.image" (dict "root" $root "which" "dataPlane"))
  "spark.kubernetes.container.image.pullPolicy" $root.Values.images.pullPolicy
  "spark.kubernetes.namespace" $root.Release.Namespace
  "spark.kubernetes.authenticate.executor.serviceAccountName" (include "lockstep.executorAccount" $root)
  "spark.kubernetes.executor.podTemplateFile" "/etc/lockstep/executor.yaml"
  "spark.kubernetes.executor.podTemplateContainerName" "executor"
  "spark.executor.instances" (toString $executors)
  "spark.driver.host" (printf "${env:POD_NAME}.%s.%s.svc" (include "lockstep.headless" (dict "root" $root)) $root.Release.Namespace)
  "spark.blockManager.port" "7079"
-}}
{{- if not (hasKey $root.Values.settings "lockstep.spark.conf.spark.executor.cores") -}}
{{- $flow := dict "root" $root "flow" $w.flow -}}
{{- $places := add (include "lockstep.slots" $flow | int) (include "lockstep.verifySlots" $flow | int) -}}
{{- $_ := set $conf "spark.executor.cores" (div (add $places (sub $executors 1)) $executors | toString) -}}
{{- end -}}
{{- with include "lockstep.pullSecrets" (dict "root" $root "more" $w.settings.imagePullSecrets) -}}
{{- $names := list -}}
{{- range fromYamlArray . -}}{{- $names = append $names .name -}}{{- end -}}
{{- $_ := set $conf "spark.kubernetes.container.image.pullSecrets" (join "," $names) -}}
{{- end -}}
{{- $needs := "the slots' processes need at least 128Mi, better 512Mi each" -}}
{{- $side := dict "side" "executor" "resources" $resources "heap" $heap "who" (printf "an executor of %s" $w.flow.name) "needs" $needs -}}
{{- $conf = merge $conf (include "lockstep.sideSettings" $side | fromJson) -}}
{{- $found := dict "lockstep.spark.master" "k8s://https://kubernetes.default.svc" -}}
{{- range $key, $value := $conf -}}{{- $_ := set $found (printf "lockstep.spark.conf.%s" $key) $value -}}{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/* The template of the executors' pods: the driver's security, secrets and place, and no access to the API. */}}
{{- define "lockstep.executorPod" -}}
{{- $root := .root -}}{{- $w := .w -}}{{- $s := $w.settings -}}
apiVersion: v1
kind: Pod
metadata:
  labels:
    {{- include "lockstep.labels" (dict "root" $root "component" "executor" "flow" $w.flow "more" $s.podLabels "pod" true) | nindent 4 }}
  annotations:
    {{- include "lockstep.podAnnotations" (dict "root" $root "settings" $s "flow" $w.flow) | fromJson | toYaml | nindent 4 }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  securityContext:
    {{- toYaml ($s.podSecurityContext | default dict) | nindent 4 }}
  {{- with include "lockstep.wholeNumber" (dict "name" "terminationGracePeriodSeconds" "value" $s.terminationGracePeriodSeconds) }}
  {{ . }}
  {{- end }}
  {{- $place := dict "settings" (omit $s "topologySpreadConstraints") "replicas" 1 "kebab" "executor" "flow" $w.flow }}
  {{- with include "lockstep.scheduling" (dict "root" $root "w" $place) | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  containers:
    - name: executor
      workingDir: /tmp
      env:
        {{- include "lockstep.environment" (dict "root" $root "settings" $s) | nindent 8 }}
      {{- with $s.extraEnvFrom }}
      envFrom:
        {{- tpl (toYaml .) $root | nindent 8 }}
      {{- end }}
      securityContext:
        {{- toYaml ($s.securityContext | default dict) | nindent 8 }}
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        {{- include "lockstep.configMounts" (dict "root" $root "settings" (include "lockstep.settingsFile" $w)) | nindent 8 }}
        {{- with include "lockstep.moreMounts" (dict "root" $root "settings" $s) }}
        {{- . | nindent 8 }}
        {{- end }}
  volumes:
    {{- include "lockstep.tmpVolume" $s | nindent 4 }}
    {{- include "lockstep.configVolumes" $root | nindent 4 }}
    {{- with include "lockstep.moreVolumes" (dict "root" $root "settings" $s) }}
    {{- . | nindent 4 }}
    {{- end }}
{{- end -}}
