package trace

import (
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// describedMax is the maximum number of rows that are described. They are in memory, together with
// the state of the statistics.
const describedMax = 20_000_000

// An extent is a summary from the index of a compact trace that is too large to be described.
type extent struct {
	Name        string   `json:"name"`
	From        string   `json:"from"`
	To          string   `json:"to"`
	Providers   []string `json:"providers"`
	Regions     []string `json:"regions"`
	Markets     int64    `json:"markets"`
	Rows        int64    `json:"rows"`
	Chosen      int64    `json:"chosen_rows"`
	BytesStored int64    `json:"bytes_stored"`
	Digest      string   `json:"digest"`

	index *trace.Index
}

// tooLarge returns the extent of the part of the trace at path that o selects. It is nil if that
// part can be described: it has at most most rows, or o selects some of the types or zones.
func tooLarge(path string, o trace.ReadOptions, most int64) (*extent, error) {
	if trace.IsEmbedded(path) || len(o.Zones)+len(o.Types) > 0 {
		return nil, nil
	}
	x, err := trace.ReadIndex(path, input.StoreOf(path))
	if err != nil || x == nil || x.Rows <= most {
		return nil, err
	}
	e, err := x.Extent(o)
	if err != nil || e.Rows <= most {
		return nil, err
	}
	return &extent{
		filepath.Base(filepath.Clean(path)), x.From.String(), x.To.String(), e.Providers, e.Regions,
		x.Markets, x.Rows, e.Rows, e.Bytes, hex.EncodeToString(x.Digest[:]), x,
	}, nil
}

// write writes e as text.
func (e *extent) write(w io.Writer, _ bool) error {
	x := e.index
	for _, line := range [][2]string{
		{"trace", e.Name},
		{"span", fmt.Sprintf("%sZ to %sZ (%.1f days)", cli.Minute(x.From), cli.Minute(x.To), x.To.Sub(x.From).Hours()/24)},
		{"providers", strings.Join(e.Providers, ", ")},
		{"regions", strings.Join(e.Regions, ", ")},
		{"markets", fmt.Sprint(e.Markets)},
		{"rows", fmt.Sprint(e.Rows)},
		{"chosen",
			fmt.Sprintf("about %d rows in %d bytes, too many to be read: choose types, one region or a shorter span for more",
				e.Chosen, e.BytesStored)},
		{"digest", e.Digest[:16]},
	} {
		if _, err := fmt.Fprintf(w, "%-22s %s\n", line[0], line[1]); err != nil {
			return err
		}
	}
	return nil
}
