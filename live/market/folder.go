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

// A FolderConfig says which trace is read.
type FolderConfig struct {
	// Path is the folder of a trace, as "spotter trace record --follow" fills it.
	Path string

	// Every is the time from one look at the folder to the next. It is only read
	// again when a file in it has changed.
	Every time.Duration

	// Regions are those that are read; none means all.
	Regions []string

	// Zones name the zones that go by their IDs in the trace, where no other feed
	// has their names. Nodes carry the names.
	Zones []Zone
}

// NewFolder returns the feed of a trace.
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

// Read reads the last hours of the trace if a file has changed. A market is known up
// to the end of the recording of its region.
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

// look returns what shows whether a file has changed, and the regions of the folder,
// the empty one for a folder that is not cut by region.
func (f *folder) look() (seen string, regions []string, err error) {
	var b strings.Builder
	err = filepath.WalkDir(f.config.Path, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".parquet" {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was moved meanwhile
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

// addTrace adds what a trace holds, known up to an instant.
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

// newestKnown returns the last value that is not unknown.
func newestKnown[T comparable](column []T, unknown T) T {
	for i := len(column) - 1; i >= 0; i-- {
		if column[i] != unknown {
			return column[i]
		}
	}
	return unknown
}

// linux reports whether the prices of s are those of a Linux node and no series
// before it, which are ordered by product, has them already.
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

// withoutGPUs reports whether the recorded prices of s are those of the machine
// without its accelerators, as Google lists them: less than half of what the catalog
// says that the whole costs.
func withoutGPUs(s *trace.Series, onDemand policy.Money) bool {
	if onDemand == 0 {
		return false
	}
	t, known := catalog.Lookup(s.Provider, s.Type)
	whole, ok := catalog.OnDemand(s.Provider, s.Region, s.Type)
	return known && t.Capacity.GPU > 0 && ok && 2*onDemand < whole
}
