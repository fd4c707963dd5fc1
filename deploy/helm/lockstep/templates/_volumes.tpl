{{/* The volumes of a pod, and where they are mounted. */}}

{{/*
The files of the configuration are mounted one by one: a folder would be a volume, in which no further volume can be
mounted. So they stay as they were when the pod began, and a change comes with a new pod; secrets are folders and follow.
*/}}
{{- define "lockstep.configMounts" -}}
- name: config
  mountPath: /etc/lockstep/mirror.yaml
  subPath: mirror.yaml
  readOnly: true
- name: config
  mountPath: /etc/lockstep/lockstep.properties
  subPath: {{ .settings | default "lockstep.properties" }}
  readOnly: true
{{- $mounted := include "lockstep.mounted" .root | fromJson }}
{{- range $index, $name := $mounted.secrets }}
- name: secret-{{ $index }}
  mountPath: /etc/lockstep/secrets/{{ $name }}
  readOnly: true
{{- end }}
{{- range $index, $name := $mounted.configMaps }}
- name: configmap-{{ $index }}
  mountPath: /etc/lockstep/secrets/{{ $name }}
  readOnly: true
{{- end }}
{{- with include "lockstep.loggingConfigMap" .root }}
- name: logging
  mountPath: /etc/lockstep/logging/{{ . }}
  readOnly: true
{{- end }}
{{- range ((.root.Values.spec.externalConfiguration | default dict).volumes) }}
- name: {{ include "lockstep.short" (dict "name" (printf "external-%s" (.name | replace "." "-")) "length" 63) }}
  mountPath: /opt/kafka/external-configuration/{{ .name }}
  readOnly: true
{{- end }}
{{- end -}}

{{- define "lockstep.configVolumes" -}}
- name: config
  configMap:
    name: {{ include "lockstep.name" (dict "root" . "suffix" "config") }}
{{- $mounted := include "lockstep.mounted" . | fromJson }}
{{- range $index, $name := $mounted.secrets }}
- name: secret-{{ $index }}
  secret:
    secretName: {{ $name | quote }}
    defaultMode: 288 # 0440: the group, which is the pod's fsGroup
{{- end }}
{{- range $index, $name := $mounted.configMaps }}
- name: configmap-{{ $index }}
  configMap:
    name: {{ $name | quote }}
{{- end }}
{{- with include "lockstep.loggingConfigMap" . }}
- name: logging
  configMap:
    name: {{ . | quote }}
{{- end }}
{{- range ((.Values.spec.externalConfiguration | default dict).volumes) }}
- name: {{ include "lockstep.short" (dict "name" (printf "external-%s" (.name | replace "." "-")) "length" 63) }}
  {{- if .secret }}
  secret:
    {{- toYaml .secret | nindent 4 }}
    {{- if not .secret.defaultMode }}
    defaultMode: 288
    {{- end }}
  {{- else }}
  configMap:
    {{- toYaml .configMap | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The volume at /tmp, of the size that the settings of a service say. */}}
{{- define "lockstep.tmpVolume" -}}
- name: tmp
{{- if kindIs "invalid" .tmpSizeLimit }}
  emptyDir: {}
{{- else }}
  emptyDir:
    sizeLimit: {{ include "lockstep.scalar" .tmpSizeLimit }}
{{- end }}
{{- end -}}

{{/* Of the volumes of a pod none may have the name of another; `settings` are those of its service. */}}
{{- define "lockstep.checkVolumes" -}}
{{- $own := "^(tmp|config|logging|rack|kube-api|console-token|(secret|configmap)-[0-9]+)$" -}}
{{- $seen := dict -}}
{{- range include "lockstep.configVolumes" .root | fromYamlArray -}}{{- $_ := set $seen .name true -}}{{- end -}}
{{- $extra := list -}}
{{- with .settings.extraVolumes -}}{{- $extra = tpl (toYaml .) $.root | fromYamlArray -}}{{- end -}}
{{- range $given := list (dict "field" "spec.template.pod.volumes" "volumes" .settings.volumes) (dict "field" "extraVolumes" "volumes" $extra) -}}
{{- range $given.volumes -}}
{{- $name := toString .name -}}
{{- if regexMatch $own $name -}}
{{- fail (printf "lockstep: %s has the volume %q, which is one of the chart's own: give it another name" $given.field $name) -}}
{{- end -}}
{{- if hasKey $seen $name -}}
{{- fail (printf "lockstep: %s has the volume %q, and there are two volumes %q then: give one of them another name" $given.field $name $name) -}}
{{- end -}}
{{- $_ := set $seen $name true -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Volumes of the resource, as they are, and of the values, which are templates. */}}
{{- define "lockstep.moreVolumes" -}}
{{- include "lockstep.checkVolumes" . -}}
{{- with .settings.volumes }}{{ toYaml . }}{{ end }}
{{- with .settings.extraVolumes }}
{{ tpl (toYaml .) $.root }}
{{- end }}
{{- end -}}

{{/* Where they are mounted. */}}
{{- define "lockstep.moreMounts" -}}
{{- with .settings.volumeMounts }}{{ toYaml . }}{{ end }}
{{- with .settings.extraVolumeMounts }}
{{ tpl (toYaml .) $.root }}
{{- end }}
{{- end -}}

{{/*
Access to the Kubernetes API, as kubelet mounts it by default; here it is a volume of its own, so that only the container
which needs it has it.
*/}}
{{- define "lockstep.apiToken" -}}
- name: kube-api
  projected:
    defaultMode: 288
    sources:
      - serviceAccountToken:
          expirationSeconds: 3607
          path: token
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
      - downwardAPI:
          items:
            - path: namespace
              fieldRef:
                fieldPath: metadata.namespace
{{- end -}}
