package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/keep"
	"github.com/spotter-dev/spotter/policy/record"
)

// RecordScenario is the scenario name in the record of a controller.
const RecordScenario = "live"

// How long the record may delay the shutdown of a controller: while the controller still holds the
// lease, so that the next leader finds the complete record in a bucket, and after it has released
// the lease, when no replica waits.
const (
	recordHandOver = time.Second
	recordClose    = 8 * time.Second
)

// recordField maps a setting of a record to its field in the configuration file.
var recordField = map[string]string{
	"Dir": "recording.dir", "Bucket": "recording.bucket.url", "Region": "recording.bucket.region", "Endpoint": "recording.bucket.endpoint",
	"Encryption": "recording.bucket.encryption", "KMSKey": "recording.bucket.kmsKey", "Keep": "recording.keep", "KeepBytes": "recording.keepBytes", "Complete": "recording.complete",
}

// checkRecord validates the settings of the record and stores them in f.record.
func (f *liveCall) checkRecord() error {
	r, c := &f.Recording, keep.DefaultConfig()
	c.Dir, c.Keep, c.KeepBytes, c.Complete = r.Dir, r.Keep.Duration, r.KeepBytes.Value(), r.Complete.Duration
	c.Bucket, c.Region, c.Endpoint, c.Encryption, c.KMSKey = r.Bucket.URL, r.Bucket.Region, r.Bucket.Endpoint, r.Bucket.Encryption, r.Bucket.KMSKey
	f.record = c
	if c.Dir == "" {
		return nil
	}
	if c.Region == "" && len(f.Prices.Regions) > 0 {
		f.record.Region = f.Prices.Regions[0]
	}
	return f.recordingFault(f.record.Validate())
}

// recordingFault names the field of a setting in an error.
func (f *liveCall) recordingFault(err error) error {
	var setting *keep.FieldError
	if !errors.As(err, &setting) {
		return err
	}
	next := fieldAdvice
	if errors.Is(err, record.ErrOtherRecording) {
		next = "give a folder that is new, empty, or the record of a controller"
	}
	name, known := recordField[setting.Field]
	if !known {
		return cli.Invalid(err, next)
	}
	return cli.Invalid(f.fault(name, fmt.Errorf("%s: %s", setting.Shown(), setting.Problem)), next)
}

// records creates the recorders of decisions and of snapshots on which a policy panicked.
func (w *wiring) records(context.Context) error {
	bundle, sum := w.policies.BundleSum(w.f.Policies)
	meta := record.Meta{Version: w.f.version, Policy: w.f.Policies, Scenario: RecordScenario, Bundle: bundle,
		BundleSHA256: sum}
	w.parts.Panics = &panicRecorder{dir: cmp.Or(w.f.PanicDir, filepath.Join(os.TempDir(), "spotter-panics")), meta: meta}
	c := w.f.record
	if c.Dir == "" {
		return nil
	}
	c.Log, c.Clock = w.log, w.clock
	r, err := keep.New(c, meta)
	if err != nil {
		return w.f.recordingFault(err)
	}
	w.parts.Recorder = r
	w.parts.Judges = append(w.parts.Judges, judged(func(string) []metav1.Condition { return recording(r, &c) }))
	w.parts.Workers = append(w.parts.Workers, func(ctx context.Context) error { return w.handOverRecord(ctx, r) })
	w.closers = append(w.closers, func() error {
		ctx, stop := context.WithTimeout(context.Background(), recordClose)
		defer stop()
		return r.Close(ctx)
	})
	return registerRecord(ctrlmetrics.Registry, r, c.Bucket != "")
}

// handOverRecord flushes the record when this replica shuts down, while it still holds the lease. A
// decision that is being carried out at that time is recorded later.
func (w *wiring) handOverRecord(ctx context.Context, r *keep.Recorder) error {
	<-ctx.Done()
	bounded, stop := context.WithTimeout(context.WithoutCancel(ctx), recordHandOver)
	defer stop()
	if err := r.Flush(bounded); err != nil {
		w.log.Warn("the record is not complete when the lease is given up", "error", err)
	}
	return nil
}

// ConditionRecording reports whether decisions are recorded.
const ConditionRecording = "Recording"

// recording returns a condition that reports whether an error prevents recording. Its message also
// states how many decisions were dropped before, since a replay shows a gap there.
func recording(r *keep.Recorder, at *keep.Config) []metav1.Condition {
	c := metav1.Condition{Type: ConditionRecording, Status: metav1.ConditionTrue, Reason: "Recorded",
		Message: "every decision is kept in " + at.Dir}
	if at.Bucket != "" {
		c.Message += " and in " + at.Bucket
	}
	writing, uploading := r.Faults()
	switch {
	case writing != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "WriteFailed", "decisions are queued, and dropped when too many are: "+writing.Error()
	case uploading != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "UploadFailed", "decisions are kept in "+at.Dir+" alone until "+at.Bucket+" takes them: "+uploading.Error()
	}
	if n := r.Lost(); n > 0 {
		c.Message += fmt.Sprintf("; %d decisions were dropped since this replica started", n)
	}
	return []metav1.Condition{c}
}

// registerRecord registers the metrics of the record.
func registerRecord(to prometheus.Registerer, r *keep.Recorder, bucket bool) error {
	up := func(part string, fault func() error) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "spotter_record_up", Help: "0 while something keeps decisions from a part of the record.", ConstLabels: prometheus.Labels{"part": part},
		}, func() float64 {
			if fault() != nil {
				return 0
			}
			return 1
		})
	}
	all := []prometheus.Collector{
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "spotter_record_lost_steps_total", Help: "Decisions that were dropped from the record.",
		}, func() float64 { return float64(r.Lost()) }),
		up("folder", func() error { writing, _ := r.Faults(); return writing }),
	}
	if bucket {
		all = append(all, up("bucket", func() error { _, uploading := r.Faults(); return uploading }))
	}
	for _, c := range all {
		if err := to.Register(c); err != nil {
			return fmt.Errorf("metrics of the record: %w", err)
		}
	}
	return nil
}
