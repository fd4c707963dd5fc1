{{/* spec.rack: an init container asks the API which rack its node is in. */}}

{{/* "yes" where there is one. */}}
{{- define "lockstep.rackInit" -}}
{{- $rack := .Values.spec.rack | default dict -}}
{{- if and $rack.topologyKey (ne (toString $rack.type) "environment-variable") -}}yes{{- end -}}
{{- end -}}

{{/* The init container; `settings` are those of the data plane's workload. */}}
{{- define "lockstep.rackContainer" -}}
{{- $container := (((.root.Values.spec.template | default dict).initContainer) | default dict) -}}
- name: rack
  image: {{ include "lockstep.image" (dict "root" .root "which" "cli") | quote }}
  imagePullPolicy: {{ .root.Values.images.pullPolicy }}
  workingDir: /tmp
  args:
    - rack
    - --topology-key
    - {{ .root.Values.spec.rack.topologyKey | quote }}
    - --node
    - $(NODE_NAME)
    - --to
    - /etc/lockstep/rack/rack.properties
  env:
    - name: NODE_NAME
      valueFrom:
        fieldRef:
          fieldPath: spec.nodeName
    {{- range $container.env }}
    {{- if ne .name "NODE_NAME" }}
    - {{ toYaml . | nindent 6 | trim }}
    {{- end }}
    {{- end }}
  resources:
    {{- toYaml (.root.Values.defaultResources.cli | default dict) | nindent 4 }}
  securityContext:
    {{- toYaml (mergeOverwrite (deepCopy (.settings.securityContext | default dict)) ($container.securityContext | default dict)) | nindent 4 }}
  volumeMounts:
    - name: tmp
      mountPath: /tmp
    - name: rack
      mountPath: /etc/lockstep/rack
    - name: kube-api
      mountPath: /var/run/secrets/kubernetes.io/serviceaccount
      readOnly: true
{{- end -}}
