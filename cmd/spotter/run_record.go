package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spotter-dev/spotter/live/keep"
	"github.com/spotter-dev/spotter/policy/record"
)

// recordScenario is what stands in place of the name of a world in the record of a
// controller.
const recordScenario = "live"

// How long a controller that ends may be held up by its record: while it still has
// the lease, so that the next leader finds in a bucket how far it went, and after it
// has given that up, when nobody waits.
const (
	recordHandOver = time.Second
	recordClose    = 8 * time.Second
)

// A recordingCall is what the flags of run say about the record.
type recordingCall struct {
	keep.Config
	bytes string
	flags *pflag.FlagSet
}

// The flags that mean nothing without --record, and which setting of a record each
// flag is.
var (
	recordFlags    = []string{"record-bucket", "record-region", "record-endpoint", "record-encryption", "record-kms-key", "record-keep", "record-keep-bytes", "record-complete"}
	recordFlagName = map[string]string{
		"Dir": "record", "Bucket": "record-bucket", "Region": "record-region", "Endpoint": "record-endpoint", "Encryption": "record-encryption",
		"KMSKey": "record-kms-key", "Keep": "record-keep", "KeepBytes": "record-keep-bytes", "Complete": "record-complete",
	}
)

func (r *recordingCall) register(flags *pflag.FlagSet) {
	r.flags, r.Config = flags, keep.DefaultConfig()
	flags.StringVar(&r.Dir, "record", "", "record every decision as Parquet in the folder `DIR`; replicas may share one")
	flags.StringVar(&r.Bucket, "record-bucket", "", "upload the record to `URL` too, as s3://bucket/prefix")
	flags.StringVar(&r.Region, "record-region", "", "the bucket lies in `REGION` (default: the first of --region, else AWS_REGION)")
	flags.StringVar(&r.Endpoint, "record-endpoint", "", "reach the bucket at `URL`, where it is not of AWS")
	flags.StringVar(&r.Encryption, "record-encryption", "", "have the bucket encrypt by `NAME` AES256 or aws:kms (default: what the bucket does by itself)")
	flags.StringVar(&r.KMSKey, "record-kms-key", "", "encrypt with the key `ID` of --record-encryption aws:kms (default: the account's own)")
	flags.DurationVar(&r.Keep, "record-keep", r.Keep, "keep the record in the folder for `TIME`; 0 for ever")
	flags.StringVar(&r.bytes, "record-keep-bytes", "4Gi", "keep at most `BYTES` of it there, as 500Mi or 4Gi; 0 is no limit")
	flags.DurationVar(&r.Complete, "record-complete", r.Complete, "let readers, such as spotter tui --live, find a decision after `TIME` at most; shorter makes more files")
}

// check finds what is wrong with the flags. regions are those of --region.
func (r *recordingCall) check(regions []string) error {
	if r.Dir == "" {
		for _, name := range recordFlags {
			if r.flags.Changed(name) {
				return wrong(fmt.Errorf("--%s: nothing is recorded without --record", name), "give --record a folder: what is uploaded is written there first")
			}
		}
		return nil
	}
	size, err := resource.ParseQuantity(r.bytes)
	if err != nil {
		return wrong(fmt.Errorf("--record-keep-bytes: %q is no number of bytes", r.bytes), "give it as 500Mi or 4Gi")
	}
	r.KeepBytes = size.Value()
	if r.Region == "" && len(regions) > 0 {
		r.Region = regions[0]
	}
	return recordingFault(r.Validate())
}

// recordingFault says which flag a setting is.
func recordingFault(err error) error {
	var field *keep.FieldError
	if !errors.As(err, &field) {
		return err
	}
	next := "run `spotter run --help`"
	if errors.Is(err, record.ErrOtherRecording) {
		next = "give --record a folder that is new, empty, or the record of a controller"
	}
	name, known := recordFlagName[field.Field]
	if !known {
		return wrong(err, next)
	}
	return wrong(fmt.Errorf("--%s: %s: %s", name, field.Shown(), field.Problem), next)
}

// records keeps what is decided, and on what a policy panicked.
func (w *wiring) records(context.Context) error {
	bundle, sum := w.policies.bundleSum(w.f.policies)
	meta := record.Meta{Version: version, Policy: w.f.policies, Scenario: recordScenario, Bundle: bundle, BundleSHA256: sum}
	w.parts.Panics = &panicRecorder{dir: w.f.panics, meta: meta}
	c := w.f.record.Config
	if c.Dir == "" {
		return nil
	}
	c.Log = w.log
	r, err := keep.New(c, meta)
	if err != nil {
		return recordingFault(err)
	}
	w.parts.Recorder = r
	w.parts.Judges = append(w.parts.Judges, judged(func(string) []metav1.Condition { return recording(r, &c) }))
	w.parts.Workers = append(w.parts.Workers, func(ctx context.Context) error { return w.handOverRecord(ctx, r) })
	w.closers = append(w.closers, recordEnd{r})
	return registerRecord(ctrlmetrics.Registry, r, c.Bucket != "")
}

// handOverRecord completes the record when this replica is asked to end, while it
// still holds the lease. A decision that is being carried out then is recorded after
// it.
func (w *wiring) handOverRecord(ctx context.Context, r *keep.Recorder) error {
	<-ctx.Done()
	bounded, stop := context.WithTimeout(context.WithoutCancel(ctx), recordHandOver)
	defer stop()
	if err := r.Flush(bounded); err != nil {
		w.log.Warn("the record is not complete when the lease is given up", "error", err)
	}
	return nil
}

// A recordEnd ends a record.
type recordEnd struct{ *keep.Recorder }

// Close writes and uploads what is left.
func (r recordEnd) Close() error {
	ctx, stop := context.WithTimeout(context.Background(), recordClose)
	defer stop()
	return r.Recorder.Close(ctx)
}

// conditionRecording says whether what is decided is kept.
const conditionRecording = "Recording"

// recording says whether anything keeps decisions from the record. What was left out
// before is said as well, for replay shows a gap there.
func recording(r *keep.Recorder, at *keep.Config) []metav1.Condition {
	c := metav1.Condition{Type: conditionRecording, Status: metav1.ConditionTrue, Reason: "Recorded", Message: "every decision is kept in " + at.Dir}
	if at.Bucket != "" {
		c.Message += " and in " + at.Bucket
	}
	writing, uploading := r.Faults()
	switch {
	case writing != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "WriteFailed", "decisions wait, and are left out when too many do: "+writing.Error()
	case uploading != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "UploadFailed", "decisions are kept in "+at.Dir+" alone until "+at.Bucket+" takes them: "+uploading.Error()
	}
	if n := r.Lost(); n > 0 {
		c.Message += fmt.Sprintf("; %d decisions were left out since this replica began", n)
	}
	return []metav1.Condition{c}
}

// registerRecord adds what is measured of the record.
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
			Name: "spotter_record_lost_steps_total", Help: "Decisions that were left out of the record.",
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
