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

// OpenRecording opens a recording of decisions and says what of it is not read.
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

// RefuseBucket refuses the URL of a bucket where a folder is wanted.
func RefuseBucket(what, dir string) error {
	if !strings.HasPrefix(dir, "s3://") {
		return nil
	}
	return cli.Invalid(fmt.Errorf("%s: %s is in a bucket, and recordings are read from folders", what, dir),
		"fetch it with `aws s3 sync "+dir+" DIR` and give DIR")
}

// RecordingError distinguishes a damaged file, or one that is not a recording, from a fault of the
// program.
func RecordingError(err error) error {
	for _, of := range []error{record.ErrNoRecording, record.ErrCorrupt, record.ErrSchema, fs.ErrNotExist} {
		if errors.Is(err, of) {
			return cli.Invalid(err, "give a folder that `spotter sim --record` or `spotter run --record` wrote")
		}
	}
	return err
}

// OnSyntheticTrace reports whether a recording that has prices of a time is of a run on an embedded
// trace that is synthetic: it does not say where its prices came from, but the command that made it
// does. A command that names no trace is of the default one of its version, which was once another.
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
