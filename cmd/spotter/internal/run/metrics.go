package run

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/spotter-dev/spotter/cmd/spotter/config"
	"github.com/spotter-dev/spotter/live/keep"
)

// RegisterRecord registers the metrics of a record with a bucket, as documents have them.
func RegisterRecord(to prometheus.Registerer) error {
	return registerRecord(to, &keep.Recorder{}, true)
}

// RegisterConfiguration registers the metrics of the file of --config.
func RegisterConfiguration(to prometheus.Registerer) error {
	return newReloader(config.Default(), nil, nil, nil).register(to)
}

// RegisterModel registers the metrics of a bundle that was asked once and failed, so that
// none is missing.
func RegisterModel(to prometheus.Registerer) error {
	l := &liveModel{state: modelState{dir: "bundle", failures: map[string]int{modelLate: 1}}}
	l.state.total.Calls = 1
	return to.Register(l)
}
