package recorded

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// The formats that are understood. FormatAuto tells them apart by content.
const (
	FormatAuto      = "auto"
	FormatOpenB     = "openb"
	FormatSnowflake = "snowflake"
	FormatBatch     = "batch"
	FormatSimKube   = "simkube"
	FormatRequests  = "requests"
)

// Formats lists the formats, in the order in which they are documented.
func Formats() []string {
	return []string{FormatAuto, FormatOpenB, FormatSnowflake, FormatBatch, FormatSimKube, FormatRequests}
}

// Options say what of a recording to take and how.
type Options struct {
	// Format is one of [Formats].
	Format string

	// From is where in the recording the scenario starts: an RFC 3339 time or a date, for a
	// recording that has dates, or a time since the start of the recording such as 36h or
	// 30d. Empty takes the busiest days.
	From string

	// Days is how many days of the recording to take; 0 means up to
	// [DaysDefault]. Fractions are allowed.
	Days float64

	// Scale multiplies the number of pods. Below one it thins them out.
	Scale float64

	// Name names the scenario; empty makes one of the format and the file.
	Name string

	// WorkloadsMax is the most workloads in the file. Lowering it groups pods
	// more coarsely, and a run becomes faster.
	WorkloadsMax int

	// Seed chooses which pods stay when Scale thins them out.
	Seed uint64

	// TokensPerSecond is how many tokens, read or written, one replica of an
	// inference service handles in a second. Raising it lowers the replicas.
	TokensPerSecond float64

	// Nodes are the nodes that can be bought. Pods that fit none of them are
	// left out, since a run refuses a workload that can never be placed. None
	// leaves nothing out.
	Nodes []Node
}

// A Node is the size of a node that can be bought.
type Node struct {
	VCPU int64

	// Allocatable is what pods may use of it.
	Allocatable policy.Resources
}

// DaysDefault is how many days of a recording are taken by default.
const DaysDefault = 7

// DefaultOptions returns the options that hold when nothing is given.
func DefaultOptions() Options {
	return Options{Format: FormatAuto, Scale: 1, WorkloadsMax: 100, Seed: 1, TokensPerSecond: 1000}
}

// The bounds of the options: values beyond them are typing errors.
const (
	daysMost      = 3650
	scaleMost     = 1000
	workloadsMost = 100_000
	tokensMost    = 1e9
)

func (o *Options) validate() error {
	switch {
	case !slices.Contains(Formats(), o.Format):
		return fmt.Errorf("format: %q is not one of %s", o.Format, strings.Join(Formats(), ", "))
	case !(o.Days >= 0 && o.Days <= daysMost):
		return fmt.Errorf("days: %v is not from 0 to %d", o.Days, daysMost)
	case o.Days > 0 && o.window() < time.Minute:
		return fmt.Errorf("days: %v is less than a minute", o.Days)
	case !(o.Scale > 0 && o.Scale <= scaleMost):
		return fmt.Errorf("scale: %v is not above 0 and at most %d", o.Scale, scaleMost)
	case o.WorkloadsMax < 1 || o.WorkloadsMax > workloadsMost:
		return fmt.Errorf("workloads-max: %d is not from 1 to %d", o.WorkloadsMax, workloadsMost)
	case !(o.TokensPerSecond > 0 && o.TokensPerSecond <= tokensMost):
		return fmt.Errorf("tokens-per-second: %v is not above 0 and at most %g", o.TokensPerSecond, tokensMost)
	case o.Name != "" && name(o.Name) != o.Name:
		return fmt.Errorf("name: %q is no name of lower-case letters, digits and dashes", o.Name)
	}
	return nil
}

// window returns Days as a duration, to the second.
func (o *Options) window() time.Duration {
	return time.Duration(float64(o.Days*86_400)) * time.Second
}

// name makes a name of an object of text: lower-case letters, digits and single
// dashes, at most 63 of them.
func name(text string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(text) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	s := b.String()
	return strings.Trim(s[:min(len(s), 63)], "-")
}
