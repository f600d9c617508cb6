package input

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/scenarios"
)

// OpenRecording opens a recording of decisions and says what of it is not read.
func OpenRecording(p *cli.Program, dir string) (*record.Recording, error) {
	if err := RefuseBucket("the recording", dir); err != nil {
		return nil, err
	}
	r, err := record.Open(dir)
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
	return cli.Invalid(fmt.Errorf("%s: %s lies in a bucket, and recordings are read from folders", what, dir), "fetch it with `aws s3 sync "+dir+" DIR` and give DIR")
}

// RecordingError tells a recording that is none, or is damaged, from a fault of the
// program.
func RecordingError(err error) error {
	for _, of := range []error{record.ErrNoRecording, record.ErrCorrupt, record.ErrSchema, fs.ErrNotExist} {
		if errors.Is(err, of) {
			return cli.Invalid(err, "give a folder that `spotter sim --record` or `spotter run --record` wrote")
		}
	}
	return err
}

// OnEmbeddedTrace reports whether a recording is of a run on an embedded trace, all of
// which are synthetic: a recording has its prices and not where they came from, but
// the command that made it says so.
func OnEmbeddedTrace(m *record.Meta) bool {
	sc, err := scenarios.Load(m.Scenario)
	if err != nil || m.Note == "" || !scenarios.Embedded(m.Scenario) {
		return false
	}
	return !strings.Contains(m.Note, "--trace") && (sc.Trace == "" || strings.HasPrefix(sc.Trace, "embedded:"))
}
