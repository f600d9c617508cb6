package market

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/live/packed"
	"github.com/spotter-dev/spotter/policy"
)

// exportVersion is that of the form of an export.
const exportVersion = 1

// ErrImport is returned for an export that cannot be read.
var ErrImport = errors.New("not an export of market experience")

// An export is the part of the cluster's own observations that must survive a restart: no feed can
// report it again.
type export struct {
	Version int        `json:"version"`
	Markets []exported `json:"markets"`
}

// exported has the observations in a market. Running are the nodes that ran in it when they were
// last counted, so that their hours continue across a restart.
type exported struct {
	Name       string            `json:"name"`
	Running    int64             `json:"running,omitempty"`
	Counted    policy.Time       `json:"counted,omitempty"`
	Experience policy.Experience `json:"experience"`
}

// Export returns the observations of the own cluster, compressed and at most Config.ExportMax bytes
// long. The same experience gives the same bytes.
func (b *Book) Export() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]exported, 0, len(b.met))
	for name, m := range b.met {
		all = append(all, exported{name, m.running, m.counted, m.seen})
	}
	// Those with nodes and then those met last come first: what does not fit is
	// cut off at the end.
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

// lastMet is the last instant that counted in a market, or that of the count.
func (x *exported) lastMet() policy.Time {
	return cmp.Or(max(x.Experience.Refused, x.Experience.Reclaimed), x.Experience.At)
}

func exportOf(all []exported) []byte {
	all = slices.Clone(all)
	slices.SortFunc(all, func(x, y exported) int { return cmp.Compare(x.Name, y.Name) })
	data, _ := packed.Pack(export{exportVersion, all}) // counts are finite
	return data
}

// Import takes in what [Book.Export] returned. It replaces what was met before. An
// export that cannot be read changes nothing.
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

// check refuses counts that cannot be.
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
