package input

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// OpenRecording opens a recording of decisions, and prints warnings about the parts that are not
// read.
func OpenRecording(p *cli.Program, dir string) (*record.Recording, error) {
	if err := RefuseBucket("the recording", dir); err != nil {
		return nil, err
	}
	r, err := record.OpenPlain(dir)
	if err != nil {
		return nil, RecordingError(err)
	}
	p.Warn(map[string]bool{}, r.Warnings)
	return r, nil
}

// RefuseBucket returns an error if dir is the URL of a bucket.
func RefuseBucket(what, dir string) error {
	if !strings.HasPrefix(dir, "s3://") {
		return nil
	}
	return cli.Invalid(fmt.Errorf("%s: %s is in a bucket, and recordings are read from folders", what, dir),
		"fetch it with `aws s3 sync "+dir+" DIR` and give DIR")
}

// RecordingError converts the error for a damaged or missing recording to an InvalidError, as
// opposed to an error of the program.
func RecordingError(err error) error {
	for _, of := range []error{record.ErrNoRecording, record.ErrCorrupt, record.ErrSchema, fs.ErrNotExist} {
		if errors.Is(err, of) {
			return cli.Invalid(err, "give a folder that `spotter sim --record` or `spotter run --record` wrote")
		}
	}
	return err
}

// OnSyntheticTrace reports whether a recording with prices at time at is a run on a synthetic
// embedded trace. A recording does not contain the source of its prices, but the command that made
// it does. A command without a trace used the default of its version, which may differ from the
// current one.
func OnSyntheticTrace(m *record.Meta, at policy.Time) bool {
	sc, err := scenarios.Load(m.Scenario)
	if err != nil || m.Note == "" || !scenarios.Embedded(m.Scenario) {
		return false
	}
	names := []string{sc.Trace}
	if _, after, ok := strings.Cut(m.Note, "--trace"); ok {
		name, _, _ := strings.Cut(strings.TrimLeft(after, " ="), " ")
		names = []string{name}
	}
	if names[0] == "" {
		names = append(names, "embedded")
	}
	for _, name := range names {
		if t, ok, err := trace.EmbeddedNamed(name); ok && err == nil && t.From <= at && at <= t.To {
			return t.Synthetic
		}
	}
	return false
}
