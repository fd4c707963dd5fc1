{{/* The parts of a pod. `w` is a workload of lockstep.workloads. */}}

{{/* Environment variables: ours, the resource's as they are, and the values', which are templates; of one name the last counts. */}}
{{- define "lockstep.environment" -}}
{{- $names := list "POD_NAME" "LOCKSTEP_LOGGING_DIR" -}}
{{- $all := .settings.env | default list -}}
{{- with .settings.extraEnv -}}{{- $all = concat $all (tpl (toYaml .) $.root | fromYamlArray) -}}{{- end -}}
{{- $last := dict -}}
{{- range $one := $all -}}{{- $_ := set $last $one.name $one -}}{{- end -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
{{- if include "lockstep.loggingConfigMap" .root }}
- name: LOCKSTEP_LOGGING_DIR
  value: /etc/lockstep/logging
{{- end }}
{{- $written := dict }}
{{- range $one := $all }}
{{- if and (not (has $one.name $names)) (not (hasKey $written $one.name)) }}
{{- $_ := set $written $one.name true }}
- {{ toYaml (get $last $one.name) | nindent 2 | trim }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Where what stands beside the resource is. */}}
{{- define "lockstep.besideArgs" -}}
- --settings
- /etc/lockstep/lockstep.properties
- --secrets-dir
- /etc/lockstep/secrets
{{- end -}}

{{/* Where pods may be; `w` as above. */}}
{{- define "lockstep.scheduling" -}}
{{- $s := .w.settings -}}
{{- with $s.nodeSelector }}
nodeSelector:
  {{- include "lockstep.texts" (list .) | fromJson | toYaml | nindent 2 }}
{{- end }}
{{- with $s.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $s.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $selector := include "lockstep.selector" (dict "root" .root "component" .w.kebab "flow" .w.flow) | fromYaml }}
{{- if $s.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range $s.topologySpreadConstraints }}
  {{- $one := deepCopy . }}
  {{- if not $one.labelSelector }}{{- $_ := set $one "labelSelector" (dict "matchLabels" $selector) }}{{- end }}
  - {{ toYaml $one | nindent 4 | trim }}
  {{- end }}
{{- else if gt (int .w.replicas) 1 }}
topologySpreadConstraints:
  # The replicas of one workload on different nodes, where that can be.
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- toYaml $selector | nindent 8 }}
{{- end }}
{{- with $s.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- range $key := list "schedulerName" "hostAliases" "dnsPolicy" "dnsConfig" "hostUsers" "runtimeClassName" }}
{{- if hasKey $s $key }}
{{ $key }}: {{ toJson (get $s $key) }}
{{- end }}
{{- end }}
{{- end -}}

{{/* A probe, `name` of `settings`: its path, and its options. Nothing where null has taken it away. */}}
{{- define "lockstep.probe" -}}
{{- if hasKey .settings .name -}}
{{ .name }}:
  httpGet:
    path: {{ .path }}
    port: tcp-prometheus
    {{- if eq (toString .scheme) "https" }}
    scheme: HTTPS
    {{- end }}
  {{- with get .settings .name }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/* The names of secrets that pull images, as a list of {name}. */}}
{{- define "lockstep.pullSecrets" -}}
{{- $found := list -}}
{{- range $one := concat ((.root.Values.global | default dict).imagePullSecrets | default list) (.root.Values.imagePullSecrets | default list) (.more | default list) -}}
{{- $found = append $found (ternary $one (dict "name" $one) (kindIs "map" $one)) -}}
{{- end -}}
{{- with $found | uniq -}}{{- toYaml . -}}{{- end -}}
{{- end -}}

{{/* The arguments of a workload's container, as a list. */}}
{{- define "lockstep.args" -}}
- --config
- /etc/lockstep/mirror.yaml
{{ include "lockstep.besideArgs" .root }}
{{- with .w.flow.name }}
- --flow
- {{ . | quote }}
{{- end }}
- --host
- "*"
- --port
- "9404"
- --instance
- $(POD_NAME)
- --log-format
- {{ .root.Values.logFormat | default "json" }}
{{- if eq .w.service "console" }}
{{- include "lockstep.consoleArgs" .root }}
{{- end }}
{{- range .w.settings.extraArgs }}
- {{ tpl (include "lockstep.scalar" .) $.root | quote }}
{{- end }}
{{- end -}}

{{/* The annotations of any pod of the release, as JSON: the resource's, `commonAnnotations` and those of `settings`. */}}
{{- define "lockstep.podAnnotations" -}}
{{- $resource := include "lockstep.resourceMetadata" .root | fromJson -}}
{{- $annotations := include "lockstep.texts" (list $resource.annotations .root.Values.commonAnnotations .settings.podAnnotations) | fromJson -}}
{{- with .flow -}}{{- $_ := set $annotations "lockstep/flow" .name -}}{{- end -}}
{{- toJson $annotations -}}
{{- end -}}

{{/* The pod of a workload: metadata and spec. */}}
{{- define "lockstep.podTemplate" -}}
{{- include "lockstep.checkPages" . -}}
{{- $root := .root -}}{{- $w := .w -}}{{- $s := $w.settings -}}
{{- $annotations := include "lockstep.podAnnotations" (dict "root" $root "settings" $s "flow" $w.flow) | fromJson -}}
{{- $_ := set $annotations "checksum/config" (include "lockstep.checksum" (dict "root" $root "w" $w)) -}}
{{- $rack := and (eq $w.service "dataPlane") (include "lockstep.rackInit" $root) -}}
{{- $driver := and (eq $w.service "dataPlane") (gt (int $root.Values.dataPlane.executors) 0) -}}
{{- /* What runs in a SparkApplication's pod, and its Spark's ports and files, are the operator's to write. */ -}}
{{- $operated := and $driver (include "lockstep.operated" $root) -}}
{{- $asks := and $driver (include "lockstep.asksForExecutors" $root) -}}
metadata:
  labels:
    {{- include "lockstep.labels" (dict "root" $root "component" $w.kebab "flow" $w.flow "more" $s.podLabels "pod" true) | nindent 4 }}
  annotations:
    {{- toYaml $annotations | nindent 4 }}
spec:
  serviceAccountName: {{ include "lockstep.serviceAccount" (dict "root" $root "service" $w.service) | quote }}
  automountServiceAccountToken: false
  enableServiceLinks: {{ $s.enableServiceLinks | default false }}
  {{- with include "lockstep.pullSecrets" (dict "root" $root "more" $s.imagePullSecrets) }}
  imagePullSecrets:
    {{- . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- toYaml ($s.podSecurityContext | default dict) | nindent 4 }}
  {{- with include "lockstep.wholeNumber" (dict "name" "terminationGracePeriodSeconds" "value" $s.terminationGracePeriodSeconds) }}
  {{ . }}
  {{- end }}
  {{- with include "lockstep.scheduling" (dict "root" $root "w" $w) | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- if $rack }}
  initContainers:
    {{- include "lockstep.rackContainer" (dict "root" $root "settings" $s) | nindent 4 }}
  {{- end }}
  containers:
    - name: {{ $w.kebab }}
      image: {{ include "lockstep.image" (dict "root" $root "which" $w.service) | quote }}
      imagePullPolicy: {{ $root.Values.images.pullPolicy }}
      workingDir: /tmp
      {{- if not $operated }}
      args:
        {{- include "lockstep.args" . | nindent 8 }}
      {{- end }}
      env:
        {{- include "lockstep.environment" (dict "root" $root "settings" $s) | nindent 8 }}
      {{- with $s.extraEnvFrom }}
      envFrom:
        {{- tpl (toYaml .) $root | nindent 8 }}
      {{- end }}
      ports:
        - name: tcp-prometheus
          containerPort: 9404
        {{- if $asks }}
        - name: tcp-spark
          containerPort: 7078
        - name: tcp-blocks
          containerPort: 7079
        {{- end }}
      {{- range $name, $path := dict "startupProbe" "/live" "livenessProbe" "/live" "readinessProbe" "/ready" }}
      {{- with include "lockstep.probe" (dict "name" $name "path" $path "settings" $s "scheme" $root.Values.metrics.scheme) }}
      {{- . | nindent 6 }}
      {{- end }}
      {{- end }}
      resources:
        {{- toYaml ($s.resources | default dict) | nindent 8 }}
      securityContext:
        {{- toYaml ($s.securityContext | default dict) | nindent 8 }}
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        {{- include "lockstep.configMounts" (dict "root" $root "settings" (include "lockstep.settingsFile" $w)) | nindent 8 }}
        {{- if $rack }}
        - name: rack
          mountPath: /etc/lockstep/rack
          readOnly: true
        {{- end }}
        {{- if $asks }}
        - name: config
          mountPath: /etc/lockstep/executor.yaml
          subPath: executor-{{ $w.flow.id }}.yaml
          readOnly: true
        {{- end }}
        {{- if $driver }}
        - name: kube-api
          mountPath: /var/run/secrets/kubernetes.io/serviceaccount
          readOnly: true
        {{- end }}
        {{- if eq $w.service "console" }}
        {{- with include "lockstep.consoleMounts" $root }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- end }}
        {{- with include "lockstep.moreMounts" (dict "root" $root "settings" $s) }}
        {{- . | nindent 8 }}
        {{- end }}
  volumes:
    {{- include "lockstep.tmpVolume" $s | nindent 4 }}
    {{- include "lockstep.configVolumes" $root | nindent 4 }}
    {{- if $rack }}
    - name: rack
      emptyDir:
        sizeLimit: 1Mi
    {{- end }}
    {{- if or $rack $driver }}
    {{- include "lockstep.apiToken" $root | nindent 4 }}
    {{- end }}
    {{- if eq $w.service "console" }}
    {{- with include "lockstep.consoleVolumes" $root }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- end }}
    {{- with include "lockstep.moreVolumes" (dict "root" $root "settings" $s) }}
    {{- . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* NAME: VALUE; nothing where the value is null, which leaves the choice to Kubernetes. */}}
{{- define "lockstep.wholeNumber" -}}
{{- if not (kindIs "invalid" .value) -}}{{ .name }}: {{ .value | int }}{{- end -}}
{{- end -}}
