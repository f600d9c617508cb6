{{- define "spotter.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- /* The name of all objects; short enough for the endings that are put to it. */}}
{{- define "spotter.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "spotter.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "spotter.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "spotter.selectorLabels" -}}
app.kubernetes.io/name: {{ include "spotter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "spotter.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "spotter.selectorLabels" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | trunc 63 | quote }}
app.kubernetes.io/part-of: spotter
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "spotter.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "spotter.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- /* The secret with the certificate of the metrics; empty where the process makes its own. */}}
{{- define "spotter.metricsSecret" -}}
{{- $c := .Values.metrics.certificate }}
{{- if $c.secretName }}
{{- $c.secretName }}
{{- else if $c.certManager.enabled }}
{{- printf "%s-metrics-tls" (include "spotter.fullname" .) }}
{{- end }}
{{- end }}

{{- define "spotter.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- define "spotter.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "spotter.podSecurityContext" -}}
runAsNonRoot: true
{{- with .Values.podSecurity }}
{{- if ne .runAsUser nil }}
runAsUser: {{ .runAsUser | int64 }}
{{- end }}
{{- if ne .runAsGroup nil }}
runAsGroup: {{ .runAsGroup | int64 }}
{{- end }}
{{- if ne .fsGroup nil }}
fsGroup: {{ .fsGroup | int64 }}
{{- end }}
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "spotter.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- /* The port of a URL. */}}
{{- define "spotter.portOf" -}}
{{- $url := urlParse . }}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" }}
{{- $port | default (ternary "443" "80" (eq $url.scheme "https")) }}
{{- end }}

{{- /* What no schema can say, since it is about two values that stand apart. */}}
{{- define "spotter.check" -}}
{{- $p := .Values.record.persistence }}
{{- if and .Values.record.enabled $p.enabled (not $p.existingClaim) (gt (int .Values.replicas) 1) (not (has "ReadWriteMany" $p.accessModes)) }}
{{- fail (printf "record.persistence.accessModes is %v and replicas is %d: only a ReadWriteMany volume can be mounted by several replicas; set replicas to 1, or record.persistence.enabled to false" $p.accessModes (int .Values.replicas)) }}
{{- end }}
{{- if and .Values.models.claim .Values.models.image.name }}
{{- fail "models.claim and models.image.name are both set: bundles come from one of them" }}
{{- end }}
{{- if and .Values.prices.recorder.enabled (not .Values.prices.recorder.regions) (not .Values.aws.regions) }}
{{- fail "prices.recorder.enabled is true, and prices.recorder.regions and aws.regions are empty: name what to record" }}
{{- end }}
{{- $c := .Values.metrics.certificate }}
{{- if and $c.certManager.enabled (not $c.certManager.issuerRef.name) }}
{{- fail "metrics.certificate.certManager.issuerRef.name is empty: name who issues the certificate" }}
{{- end }}
{{- if and (not .Values.metrics.secure) (or $c.secretName $c.certManager.enabled) }}
{{- fail "metrics.secure is false and metrics.certificate is given: metrics are not served over TLS then" }}
{{- end }}
{{- $u := .Values.usage.prometheus }}
{{- if and (not $u.url) (or $u.cpuQuery $u.memoryQuery $u.serviceAccountToken $u.tokenSecret.name $u.caConfigMap.name) }}
{{- fail "usage.prometheus.url is empty: Prometheus is not asked without it, and the other values of usage.prometheus mean nothing" }}
{{- end }}
{{- if ne (empty .Values.gcp.regions) (empty .Values.gcp.apiKeySecret.name) }}
{{- fail "of gcp.regions and gcp.apiKeySecret.name one is empty: Google's prices need both" }}
{{- end }}
{{- $n := .Values.notifications }}
{{- if and (not $n.url) (or $n.source $n.headerSecret.name) }}
{{- fail "notifications.url is empty: nothing is sent without it, and the other values of notifications mean nothing" }}
{{- end }}
{{- if and $u.tokenSecret.name $u.serviceAccountToken }}
{{- fail "usage.prometheus.tokenSecret.name and usage.prometheus.serviceAccountToken are both set: one token is shown" }}
{{- end }}
{{- end }}

{{- /* Credentials of AWS out of a secret. */}}
{{- define "spotter.awsEnv" -}}
{{- $secret := .Values.aws.credentials.secretName }}
{{- range list "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY" }}
- name: {{ . }}
  valueFrom:
    secretKeyRef: {name: {{ $secret | quote }}, key: {{ . }}}
{{- end }}
- name: AWS_SESSION_TOKEN
  valueFrom:
    secretKeyRef: {name: {{ $secret | quote }}, key: AWS_SESSION_TOKEN, optional: true}
{{- end }}

{{- /* What the pods of jobs have in common with each other. */}}
{{- define "spotter.onceSpec" -}}
restartPolicy: Never
{{- include "spotter.pullSecrets" . }}
securityContext:
  {{- include "spotter.podSecurityContext" . | nindent 2 }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
tolerations:
# Every node may be one that we drain, or that was cordoned.
- {key: spotter.dev/draining, operator: Exists}
- {key: node.kubernetes.io/unschedulable, operator: Exists}
{{- with .Values.tolerations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "spotter.onceContainer" -}}
image: {{ include "spotter.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
resources:
  requests: {cpu: 50m, memory: 64Mi}
  limits: {memory: 512Mi}
securityContext:
  {{- include "spotter.containerSecurityContext" . | nindent 2 }}
{{- end }}

{{- /* Labels and annotations of a hook: the chart's context, the component and the hook. */}}
{{- define "spotter.hook" -}}
{{- $ := index . 0 }}
  labels:
    {{- include "spotter.labels" $ | nindent 4 }}
    app.kubernetes.io/component: {{ index . 1 }}
  annotations:
    helm.sh/hook: {{ index . 2 }}
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
