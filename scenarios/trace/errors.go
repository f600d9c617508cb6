package trace

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// The kinds of error in traces and recordings, for errors.Is.
var (
	ErrNotTrace = errors.New("not a trace")
	ErrEmpty    = errors.New("empty trace")
	ErrCorrupt  = errors.New("damaged file")
	ErrColumn   = errors.New("wrong column")
	ErrValue    = errors.New("impossible value")
	ErrOrder    = errors.New("clock going back")
	ErrNoRegion = errors.New("provider or region unknown")
	ErrFormat   = errors.New("format not understood")
	ErrBadRows  = errors.New("bad rows")
	ErrTarget   = errors.New("no place for a trace")
	ErrUnnamed  = errors.New("market or time unknown")
	ErrVersion  = errors.New("written by another version")
	ErrStored   = errors.New("a trace already")
)

// A FileError is an error at a position in a stored trace.
type FileError struct {
	File   string
	Column string // empty if the error is not about a single column
	Row    int64  // row number in the file, from 1; 0 if the error is not about a single row
	Value  string // the value in the file; may be empty
	Err    error

	// Own reports that this package wrote the file, so importing it again does not help.
	Own bool
}

// Error returns all known details, starting with the file.
func (e *FileError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Column != "" {
		fmt.Fprintf(&b, ": column %s", e.Column)
	}
	if e.Row > 0 {
		fmt.Fprintf(&b, ", row %d", e.Row)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if e.Value != "" {
		fmt.Fprintf(&b, ": %s", e.Value)
	}
	return b.String()
}

// Unwrap returns the underlying error.
func (e *FileError) Unwrap() error { return e.Err }

// The bounds of valid values. They prevent a damaged number from being accepted as a price or a
// time.
const (
	priceMax = 1_000_000 * policy.Dollar

	TimeMin policy.Time = 1                 // 1970-01-01
	TimeMax policy.Time = 7_258_118_400_000 // 2200-01-01

	// RequestedMax is the maximum number of nodes that a probe requests at once.
	RequestedMax = 10_000

	// ProbeGapMax is the maximum number of seconds between two observations of a market: a year.
	ProbeGapMax = 366 * 24 * 3600

	// ScoreMax is the maximum placement score.
	ScoreMax = 10

	bandMax = 4

	// hazardMax is the maximum number of reclaims per node-hour. In a market with more, no node
	// would last a second.
	hazardMax = 3600
)
