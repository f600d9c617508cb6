package record

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/parquet-go/parquet-go"
)

// SchemaVersion is the version of the tables that this package writes. It reads this version and
// schemaWhole, in which no segment continues another.
const (
	SchemaVersion = 4
	schemaWhole   = 3
)

// Errors that callers distinguish with errors.Is.
var (
	// ErrNoRecording means that a folder contains no complete segment.
	ErrNoRecording = errors.New("no recording")

	// ErrOtherRecording means that a folder contains the recording of another run, or other files.
	ErrOtherRecording = errors.New("the folder is not free for this recording")

	// ErrCorrupt means that a file of a complete segment cannot be read.
	ErrCorrupt = errors.New("corrupt recording")

	// ErrSchema means that a recording has another schema version.
	ErrSchema = errors.New("unknown schema version")
)

// A Meta describes the origin of a recording. Every file contains it.
type Meta struct {
	// Version is the version of the program, Policy the policy as written in --policy, and Scenario
	// the name of the scenario.
	Version  string
	Policy   string
	Scenario string

	// Bundle is the name of the model bundle that produced the forecasts of the run, as it was
	// specified, and BundleSHA256 the SHA-256 of its manifest in hex, since the folder may contain
	// another bundle later. Both are empty if no bundle was used, if each pool of a live cluster
	// names its own bundle, and in recordings of programs that did not write them.
	Bundle       string
	BundleSHA256 string

	// Seed is the seed of the run; 0 for a live cluster.
	Seed uint64

	// Note is free text, for example the command line of the caller.
	Note string
}

// The keys under which a Meta is stored in the files.
const (
	keySchema   = "spotter.schema"
	keyVersion  = "spotter.version"
	keyPolicy   = "spotter.policy"
	keyScenario = "spotter.scenario"
	keySeed     = "spotter.seed"
	keyNote     = "spotter.note"
	keyBundle   = "spotter.bundle"
	keySHA256   = "spotter.bundle_sha256"

	// keyContinues is "true" in the files of a segment that continues the last step of the previous
	// segment.
	keyContinues = "spotter.continues"
)

func (m *Meta) options(continues bool) []parquet.WriterOption {
	o := []parquet.WriterOption{
		parquet.KeyValueMetadata(keyContinues, strconv.FormatBool(continues)),
		parquet.KeyValueMetadata(keySchema, strconv.Itoa(SchemaVersion)),
		parquet.KeyValueMetadata(keyVersion, m.Version),
		parquet.KeyValueMetadata(keyPolicy, m.Policy),
		parquet.KeyValueMetadata(keyScenario, m.Scenario),
		parquet.KeyValueMetadata(keySeed, strconv.FormatUint(m.Seed, 10)),
		parquet.KeyValueMetadata(keyNote, m.Note),
	}
	if m.Bundle != "" {
		o = append(o, parquet.KeyValueMetadata(keyBundle, m.Bundle), parquet.KeyValueMetadata(keySHA256, m.BundleSHA256))
	}
	return o
}

func readMeta(lookup func(string) (string, bool)) (Meta, error) {
	schema, ok := lookup(keySchema)
	if !ok {
		return Meta{}, fmt.Errorf("no key %s: %w", keySchema, ErrCorrupt)
	}
	if schema != strconv.Itoa(SchemaVersion) && schema != strconv.Itoa(schemaWhole) {
		return Meta{}, fmt.Errorf("schema version %s, this program reads %d and %d: %w", schema, schemaWhole, SchemaVersion,
			ErrSchema)
	}
	var m Meta
	m.Version, _ = lookup(keyVersion)
	m.Policy, _ = lookup(keyPolicy)
	m.Scenario, _ = lookup(keyScenario)
	m.Note, _ = lookup(keyNote)
	m.Bundle, _ = lookup(keyBundle)
	m.BundleSHA256, _ = lookup(keySHA256)
	seed, _ := lookup(keySeed)
	n, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		return Meta{}, fmt.Errorf("key %s: %q is not a seed: %w", keySeed, seed, ErrCorrupt)
	}
	m.Seed = n
	return m, nil
}
