package trace

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// The kinds of fault in what is read or written, for errors.Is.
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

// A FileError says where in a stored trace something is wrong.
type FileError struct {
	File   string
	Column string // empty when no single column is at fault
	Row    int64  // from 1 within the file; 0 when no single row is at fault
	Value  string // the value in the file; may be empty
	Err    error

	// Own reports that this package wrote the file, so that an import cannot help.
	Own bool
}

// Error returns everything that is known, the file first.
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

// Unwrap returns the fault itself.
func (e *FileError) Unwrap() error { return e.Err }

// The bounds of what can be true. They keep a damaged number from passing for
// a price or a time; a price above the most is no price of a node-hour.
const (
	priceMax = 1_000_000 * policy.Dollar

	TimeMin policy.Time = 1                 // 1970-01-01
	TimeMax policy.Time = 7_258_118_400_000 // 2200-01-01

	// RequestedMax is the maximum number of nodes that a probe requests at once.
	RequestedMax = 10_000

	// ProbeGapMax bounds the seconds between two looks at a market: a year.
	ProbeGapMax = 366 * 24 * 3600

	// ScoreMax is the best placement score.
	ScoreMax = 10

	bandMax = 4

	// hazardMax bounds the reclaims per node-hour: a market with more would keep
	// no node for a second.
	hazardMax = 3600
)
