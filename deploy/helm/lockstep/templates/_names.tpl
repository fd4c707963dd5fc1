{{/*
Names and labels. Aliases of clusters become parts of names, so they are made fit for Kubernetes and short; what is lost
by that is made up for by a hash of the whole.
*/}}

{{/* The resource's name, by which all objects go. */}}
{{- define "lockstep.fullname" -}}
{{- $given := .Values.fullnameOverride | default .Values.metadata.name | default .Release.Name -}}
{{- include "lockstep.short" (dict "name" ($given | lower | replace "." "-") "length" 50) -}}
{{- end -}}

{{/* `name`, of at most `length` characters. */}}
{{- define "lockstep.short" -}}
{{- $length := int .length -}}
{{- if le (len .name) $length -}}
{{- .name -}}
{{- else -}}
{{- printf "%s-%s" (trunc (int (sub $length 9)) .name | trimSuffix "-") (sha256sum .name | trunc 8) -}}
{{- end -}}
{{- end -}}

{{/* An object of the whole release: FULLNAME-SUFFIX. */}}
{{- define "lockstep.name" -}}
{{- include "lockstep.short" (dict "name" (printf "%s-%s" (include "lockstep.fullname" .root) .suffix) "length" 63) -}}
{{- end -}}

{{/*
A workload: FULLNAME-SERVICE-FLOW. 52 characters, because a StatefulSet's pods have a label of its name and eleven more.
*/}}
{{- define "lockstep.workload" -}}
{{- $name := printf "%s-%s-%s" (include "lockstep.fullname" .root) .service .flow.id -}}
{{- include "lockstep.short" (dict "name" $name "length" 52) -}}
{{- end -}}

{{/* SERVICE as people and images name it: data-plane of dataPlane. */}}
{{- define "lockstep.kebab" -}}
{{- get (dict "topicSync" "topic-sync" "aclSync" "acl-sync" "checkpoint" "checkpoint" "heartbeat" "heartbeat" "dataPlane" "data-plane") . -}}
{{- end -}}

{{/* The labels and annotations of the resource that pass on, as JSON: not what Helm, kubectl and Strimzi keep there for themselves. */}}
{{- define "lockstep.resourceMetadata" -}}
{{- $metadata := .Values.metadata -}}
{{- $own := "^(meta\\.helm\\.sh|helm\\.sh|(.*\\.)?strimzi\\.io|kubectl\\.kubernetes\\.io)/" -}}
{{- $labels := dict -}}
{{- range $key, $value := $metadata.labels | default dict -}}
{{- if not (regexMatch $own $key) -}}{{- $_ := set $labels $key $value -}}{{- end -}}
{{- end -}}
{{- $annotations := dict -}}
{{- range $key, $value := $metadata.annotations | default dict -}}
{{- if not (regexMatch $own $key) -}}{{- $_ := set $annotations $key $value -}}{{- end -}}
{{- end -}}
{{- dict "labels" $labels "annotations" $annotations | toJson -}}
{{- end -}}

{{/* A list of mappings joined to one, as JSON: of a key the last counts, and each value is a text, as Kubernetes asks. */}}
{{- define "lockstep.texts" -}}
{{- $texts := dict -}}
{{- range . -}}
{{- range $key, $value := . -}}{{- $_ := set $texts $key (include "lockstep.scalar" $value) -}}{{- end -}}
{{- end -}}
{{- toJson $texts -}}
{{- end -}}

{{/* What tells the pods of this release from others; never to be changed, for selectors cannot be. */}}
{{- define "lockstep.selector" -}}
app.kubernetes.io/name: lockstep
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- with .flow }}
lockstep/flow: {{ .id | quote }}
{{- end }}
{{- end -}}

{{/*
The labels of an object: ours, over the user's, over the resource's. `more` are those of one object. A pod (`pod`) has no
version among them: it is not started anew because the chart has another one.
*/}}
{{- define "lockstep.labels" -}}
{{- $resource := include "lockstep.resourceMetadata" .root | fromJson -}}
{{- $labels := include "lockstep.texts" (list $resource.labels .root.Values.commonLabels .more) | fromJson -}}
{{- if not (hasKey $labels "app.kubernetes.io/part-of") -}}{{- $_ := set $labels "app.kubernetes.io/part-of" "lockstep" -}}{{- end -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- if not .pod -}}
{{- $_ := set $labels "app.kubernetes.io/version" (.root.Chart.AppVersion | toString) -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .root.Chart.Name (replace "+" "_" .root.Chart.Version)) -}}
{{- end -}}
{{- range $key, $value := include "lockstep.selector" . | fromYaml -}}{{- $_ := set $labels $key $value -}}{{- end -}}
{{- toYaml $labels -}}
{{- end -}}

{{/* Name, namespace, labels and annotations of an object: `name`, and optionally `component`, `flow`, `more` labels, `annotations`, `namespace`. */}}
{{- define "lockstep.metadata" -}}
{{- $resource := include "lockstep.resourceMetadata" .root | fromJson -}}
{{- $annotations := include "lockstep.texts" (list $resource.annotations .root.Values.commonAnnotations .annotations) | fromJson -}}
{{- with .flow -}}{{- $_ := set $annotations "lockstep/flow" .name -}}{{- end -}}
name: {{ .name | quote }}
{{- if ne (toString .namespace) "-" }}
namespace: {{ .namespace | default .root.Release.Namespace | quote }}
{{- end }}
labels:
  {{- include "lockstep.labels" . | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* REGISTRY/REPOSITORY:TAG of a service or the CLI (`which`, as in `images`). */}}
{{- define "lockstep.image" -}}
{{- $images := .root.Values.images -}}
{{- $one := get $images .which -}}
{{- $global := .root.Values.global | default dict -}}
{{- $registry := $one.registry | default $global.imageRegistry | default $images.registry -}}
{{- $path := ternary $one.repository (printf "%s/%s" $registry $one.repository) (empty $registry) -}}
{{- if $one.digest -}}
{{- printf "%s@%s" $path $one.digest -}}
{{- else -}}
{{- printf "%s:%s" $path ($one.tag | default $images.tag | default .root.Chart.AppVersion | include "lockstep.scalar") -}}
{{- end -}}
{{- end -}}

{{/* A Service: SUFFIX as above. Its name has to begin with a letter, unlike the resource's. */}}
{{- define "lockstep.serviceName" -}}
{{- $name := include "lockstep.name" . -}}
{{- if regexMatch "^[0-9]" $name -}}{{- include "lockstep.short" (dict "name" (printf "mirror-%s" $name) "length" 63) -}}{{- else -}}{{- $name -}}{{- end -}}
{{- end -}}

{{/* The headless Service of the data plane. */}}
{{- define "lockstep.headless" -}}
{{- include "lockstep.serviceName" (dict "root" .root "suffix" "data-plane") -}}
{{- end -}}
