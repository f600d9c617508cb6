package market

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A FolderConfig configures the feed of a trace.
type FolderConfig struct {
	// Path is the folder of a trace that "spotter trace record --follow" fills.
	Path string

	// Every is the interval at which the folder is checked. It is read again only if a file has
	// changed.
	Every time.Duration

	// Regions are the regions to read; empty means all.
	Regions []string

	// Zones contains the names of zones that the trace identifies by ID, if no other feed has them.
	// Nodes are labelled with the names.
	Zones []Zone
}

// NewFolder returns the feed of a trace, or an error if c is invalid.
func NewFolder(c FolderConfig) (Feed, error) {
	info, err := os.Stat(c.Path)
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a folder")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: trace folder %q: %w", ErrConfig, c.Path, err)
	}
	if c.Every < time.Second || c.Every > 7*24*time.Hour {
		return nil, fmt.Errorf("%w: trace folder %q: interval %v: it must be between a second and a week", ErrConfig,
			c.Path, c.Every)
	}
	return &folder{config: c}, nil
}

type folder struct {
	config FolderConfig
	seen   string // what the files were like when they were read
	asOf   policy.Time
}

// Name implements [Feed].
func (f *folder) Name() string { return "trace" }

// Every implements [Feed].
func (f *folder) Every() time.Duration { return f.config.Every }

// Prices implements [Feed].
func (f *folder) Prices() bool { return true }

// Read reads the last hours of the trace if a file has changed. The prices of a region are known up
// to the end of its recording.
func (f *folder) Read(_ context.Context, ask Ask) (*Update, error) {
	seen, regions, err := f.look()
	if err != nil {
		return nil, err
	}
	if seen == f.seen {
		return &Update{AsOf: f.asOf}, nil
	}
	u := &Update{Zones: f.config.Zones}
	for _, region := range regions {
		o := trace.ReadOptions{From: ask.Now - (historySize+1)*gridStep}
		if region != "" {
			o.Regions = []string{region}
		}
		t, err := trace.Open(f.config.Path, o)
		if errors.Is(err, trace.ErrEmpty) {
			// The record ended before the start of the history of a snapshot.
			o.From = 0
			t, err = trace.Open(f.config.Path, o)
		}
		if err != nil {
			return nil, err
		}
		if t.Synthetic {
			return nil, fmt.Errorf("%w: trace folder %q: its prices were generated, not recorded", ErrConfig, f.config.Path)
		}
		u.addTrace(t, min(ask.Now, t.WholeTo))
	}
	f.seen, f.asOf = seen, u.AsOf
	return u, nil
}

// look returns a text that changes whenever a file of the folder changes, and the regions in the
// folder. The region is empty for files that are not partitioned by region.
func (f *folder) look() (seen string, regions []string, err error) {
	var b strings.Builder
	err = filepath.WalkDir(f.config.Path, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".parquet" {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was moved in the meantime
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, path, info.Size(), info.ModTime().UnixNano())
		region := ""
		for part := range strings.SplitSeq(filepath.ToSlash(path), "/") {
			if name, ok := strings.CutPrefix(part, "region="); ok {
				region = name
			}
		}
		if len(f.config.Regions) == 0 || region == "" || slices.Contains(f.config.Regions, region) {
			regions = append(regions, region)
		}
		return nil
	})
	slices.Sort(regions)
	return b.String(), slices.Compact(regions), err
}

// addTrace adds the data of a trace, known up to the time to.
func (u *Update) addTrace(t *trace.Trace, to policy.Time) {
	u.AsOf = max(u.AsOf, to)
	for i := range t.Series {
		s := &t.Series[i]
		if !linux(s, t.Series[:i]) {
			continue
		}
		onDemand := newestKnown(s.OnDemand, 0)
		if withoutGPUs(s, onDemand) {
			continue
		}
		for k, at := range s.At {
			price := s.Spot[k]
			if price == 0 {
				price = policy.NoPrice // some lists write 0 for what is not sold
			}
			p := Price{Provider: s.Provider, Region: s.Region, Zone: s.Zone, Type: s.Type, At: at, KnownTo: to, Price: price}
			for n, bids := range s.Bids {
				if bids != nil {
					p.Bids[n] = bids[k]
				}
			}
			u.Spot = append(u.Spot, p)
		}
		if onDemand > 0 {
			u.OnDemand = append(u.OnDemand, OnDemandPrice{Provider: s.Provider, Region: s.Region, Type: s.Type, Price: onDemand})
		}
		if band := newestKnown(s.Band, -1); band >= 0 {
			u.Bands = append(u.Bands, PublishedBand{s.Provider, s.Region, s.Type, policy.Band(band)})
		}
		if score := newestKnown(s.Score, -1); score >= 0 {
			u.Scores = append(u.Scores, PublishedScore{s.Provider, s.Region, s.Zone, s.Type, score})
		}
	}
}

// newestKnown returns the last value of column that is not unknown, or unknown if all values are.
func newestKnown[T comparable](column []T, unknown T) T {
	for i := len(column) - 1; i >= 0; i-- {
		if column[i] != unknown {
			return column[i]
		}
	}
	return unknown
}

// linux reports whether s contains the prices of Linux nodes and no earlier series contains them
// for the same market. The series of a market are ordered by product.
func linux(s *trace.Series, before []trace.Series) bool {
	if s.Product != "" && s.Product != trace.ProductLinux && s.Product != trace.ProductLinux+" (Amazon VPC)" {
		return false
	}
	for k := len(before) - 1; k >= 0; k-- {
		p := &before[k]
		if p.Provider != s.Provider || p.Region != s.Region || p.Zone != s.Zone || p.Type != s.Type {
			return true
		}
		if p.Product == "" || p.Product == trace.ProductLinux {
			return false
		}
	}
	return true
}

// withoutGPUs reports whether the recorded prices of s exclude the accelerators of the machine, as
// Google lists them: the on-demand price is less than half of the catalog's price of the whole
// machine.
func withoutGPUs(s *trace.Series, onDemand policy.Money) bool {
	if onDemand == 0 {
		return false
	}
	t, known := catalog.Lookup(s.Provider, s.Type)
	whole, ok := catalog.OnDemand(s.Provider, s.Region, s.Type)
	return known && t.Capacity.GPU > 0 && ok && 2*onDemand < whole
}
