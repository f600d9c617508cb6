{{- /* What the controller reads as its configuration: docs/reference-configuration.md. */}}
{{- define "spotter.configuration" -}}
{{- $v := .Values -}}
apiVersion: config.spotter.dev/v1alpha1
kind: SpotterConfiguration
mode: {{ $v.mode }}
policies: {{ $v.policies | quote }}
namespace: {{ .Release.Namespace }}
backends: {{ toJson $v.backends }}
provider: {{ $v.provider }}
{{- with $v.spotLabels }}
spotLabels: {{ toJson . }}
{{- end }}
stepInterval: {{ $v.step }}
shutdownTimeout: {{ $v.shutdownTimeoutSeconds }}s
killSwitch: {{ $v.killSwitch | quote }}
panicDir: /var/lib/spotter/panics
{{- with $v.leaderElection }}
leaderElection: {leaseDuration: {{ .leaseDuration }}, renewDeadline: {{ .renewDeadline }}, retryPeriod: {{ .retryPeriod }}}
{{- end }}
writes: {qps: {{ $v.writes.qps }}, burst: {{ $v.writes.burst }}}
prices:
  {{- if $v.prices.traceClaim }}
  trace: {{ clean (printf "/var/lib/spotter/trace/%s" $v.prices.tracePath) | quote }}
  {{- end }}
  {{- with $v.prices.interval }}
  interval: {{ . }}
  {{- end }}
  regions: {{ toJson $v.aws.regions }}
  azureRegions: {{ toJson $v.azure.regions }}
  families: {{ toJson $v.aws.families }}
  {{- if or $v.aws.regions $v.azure.regions }}
  cacheFile: /var/lib/spotter/prices/cache
  {{- end }}
{{- with $v.aws.queueURL }}
notices: {queueURL: {{ . | quote }}}
{{- end }}
{{- with $v.notifications }}
{{- if .url }}
notifications:
  url: {{ .url | quote }}
  {{- with .source }}
  source: {{ . | quote }}
  {{- end }}
  {{- if .headerSecret.name }}
  header: {{ .header | quote }}
  headerFile: {{ printf "/etc/spotter/notifications/%s" .headerSecret.key | quote }}
  {{- end }}
{{- end }}
{{- end }}
models:
  timeout: {{ $v.models.timeout }}
  {{- with $v.models.directory | default (ternary "/var/lib/spotter/models" "" (or (ne $v.models.claim "") (ne $v.models.image.name ""))) }}
  dir: {{ . | quote }}
  {{- end }}
{{- with $v.usage.prometheus }}
{{- if .url }}
usage:
  prometheus:
    url: {{ .url | quote }}
    timeout: {{ .timeout }}
    {{- with .cpuQuery }}
    cpuQuery: {{ . | quote }}
    {{- end }}
    {{- with .memoryQuery }}
    memoryQuery: {{ . | quote }}
    {{- end }}
    {{- if .tokenSecret.name }}
    tokenFile: {{ printf "/etc/spotter/prometheus-token/%s" .tokenSecret.key | quote }}
    {{- else if .serviceAccountToken }}
    tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
    {{- end }}
    {{- if .caConfigMap.name }}
    caFile: {{ printf "/etc/spotter/prometheus-ca/%s" .caConfigMap.key | quote }}
    {{- end }}
{{- end }}
{{- end }}
{{- with $v.record }}
{{- if .enabled }}
recording:
  dir: /var/lib/spotter/record/steps
  keep: {{ .keep }}
  keepBytes: {{ .keepBytes }}
  {{- if .bucket.url }}
  bucket: {{ toJson .bucket }}
  {{- end }}
{{- end }}
{{- end }}
discounts: {1y: {{ $v.discounts.oneYear }}, 3y: {{ $v.discounts.threeYears }}}
metrics:
  bindAddress: ":8443"
  secure: {{ $v.metrics.secure }}
  {{- if include "spotter.metricsSecret" . }}
  certDir: /etc/spotter/metrics-certificate
  {{- end }}
  compat: {{ toJson $v.metrics.compat }}
health: {bindAddress: ":8081"}
logging: {level: {{ $v.log.level }}, format: {{ $v.log.format }}}
{{- end }}

{{- /* What of it takes a restart: without what the controller applies while it runs. */}}
{{- define "spotter.configuration.fixed" -}}
{{- $c := include "spotter.configuration" . | fromYaml -}}
{{- $_ := unset $c.logging "level" -}}
{{- omit $c "stepInterval" "writes" "discounts" | toJson -}}
{{- end }}
