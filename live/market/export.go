package market

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/live/packed"
	"github.com/spotter-dev/spotter/policy"
)

// exportVersion is the version of the export format.
const exportVersion = 1

// ErrImport is returned for an export that cannot be decoded.
var ErrImport = errors.New("not an export of market experience")

// An export contains the cluster's own observations that must survive a restart, because no feed
// can report them again.
type export struct {
	Version int        `json:"version"`
	Markets []exported `json:"markets"`
}

// An exported contains the observations in a market. Running is the number of nodes that ran in it
// when they were last counted, so that their hours continue after a restart.
type exported struct {
	Name       string            `json:"name"`
	Running    int64             `json:"running,omitempty"`
	Counted    policy.Time       `json:"counted,omitempty"`
	Experience policy.Experience `json:"experience"`
}

// Export returns the observations of the own cluster, compressed to at most Config.ExportMax bytes.
// The same observations result in the same bytes.
func (b *Book) Export() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]exported, 0, len(b.met))
	for name, m := range b.met {
		all = append(all, exported{name, m.running, m.counted, m.seen})
	}
	// Markets with nodes are first, then markets in descending order of their last observation. The
	// last ones are omitted if the export is too large.
	slices.SortFunc(all, func(x, y exported) int {
		return cmp.Or(cmp.Compare(min(1, y.Running), min(1, x.Running)), cmp.Compare(y.lastMet(), x.lastMet()),
			cmp.Compare(x.Name, y.Name))
	})
	for n := len(all); ; n = n * 3 / 4 {
		if data := exportOf(all[:n]); len(data) <= b.config.ExportMax || n == 0 {
			return data
		}
	}
}

// lastMet returns the time of the last refusal or reclaim in a market, or, without these, of the
// last update of its counts.
func (x *exported) lastMet() policy.Time {
	return cmp.Or(max(x.Experience.Refused, x.Experience.Reclaimed), x.Experience.At)
}

func exportOf(all []exported) []byte {
	all = slices.Clone(all)
	slices.SortFunc(all, func(x, y exported) int { return cmp.Compare(x.Name, y.Name) })
	data, _ := packed.Pack(export{exportVersion, all}) // counts are finite
	return data
}

// Import replaces the observations by the result of [Book.Export]. An export that cannot be decoded
// changes nothing.
func (b *Book) Import(data []byte) error {
	var e export
	if err := packed.Unpack(data, packed.ReadMax, &e); err != nil {
		return fmt.Errorf("%w: %w", ErrImport, err)
	}
	if e.Version != exportVersion {
		return fmt.Errorf("%w: version %d, not %d", ErrImport, e.Version, exportVersion)
	}
	met := make(map[string]*meeting, len(e.Markets))
	for i := range e.Markets {
		x := &e.Markets[i]
		if err := x.check(); err != nil {
			return fmt.Errorf("%w: market %q: %w", ErrImport, x.Name, err)
		}
		met[x.Name] = &meeting{seen: x.Experience, running: x.Running, counted: x.Counted, imported: true}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.met = met
	for i := range b.table.met {
		b.table.met[i] = met[b.table.markets[i].Name]
		b.table.markets[i].Experience = policy.Experience{}
	}
	return nil
}

// check returns an error for negative or invalid counts and for an empty name.
func (x *exported) check() error {
	e := &x.Experience
	for _, n := range []float64{e.Launches, e.Refusals, e.Reclaims, e.NodeHours, float64(x.Running), float64(e.At)} {
		if !(n >= 0) {
			return fmt.Errorf("count %v is below zero", n)
		}
	}
	if x.Name == "" {
		return errors.New("it has no name")
	}
	return nil
}
