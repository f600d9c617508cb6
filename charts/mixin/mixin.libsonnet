// The dashboard and the alerts of Spotter as a mixin. The chart ships them as they are
// rendered with the settings of config.libsonnet: go test ./charts -run TestMixin -rewrite.
(import 'config.libsonnet') +
(import 'alerts.libsonnet') +
(import 'dashboard.libsonnet')
