package aws

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// stateFolder is the folder within a trace for the files that only the recorder needs: the lock,
// the journal, and the count of requested placement scores.
const stateFolder = ".record"

// Keys and values of the metadata of a recorded trace.
const (
	metaZones  = "zones"
	metaSource = "source"

	zonesByID   = "id"
	zonesByName = "name"
	source      = "DescribeSpotPriceHistory"
)

// checkFolder returns an error if dir contains files that a recorder did not write. A missing
// folder is not an error.
func checkFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %w", dir, ErrFolder, err)
	}
	for _, e := range entries {
		if !e.IsDir() || e.Name() != stateFolder && e.Name() != "provider="+catalog.AWS {
			return fmt.Errorf("%s: %w: it holds %q", dir, ErrFolder, e.Name())
		}
	}
	return nil
}

// A dayFile is the file of a region and day.
type dayFile struct {
	path string
	date policy.Time
	t    *trace.Trace
}

// regionFolder returns the folder of a region's files.
func regionFolder(dir, region string) string {
	return filepath.Join(dir, "provider="+catalog.AWS, "region="+url.PathEscape(region))
}

func dayPath(dir, region string, date policy.Time) string {
	return filepath.Join(regionFolder(dir, region), "date="+date.Std().Format(time.DateOnly), "part-0.parquet")
}

// dates returns the days that have a file, ascending.
func dates(dir, region string) ([]policy.Time, error) {
	entries, err := os.ReadDir(regionFolder(dir, region))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []policy.Time
	for _, e := range entries {
		text, ok := strings.CutPrefix(e.Name(), "date=")
		at, err := time.Parse(time.DateOnly, text)
		if !ok || err != nil {
			return nil, fmt.Errorf("%s: %w: it holds %q", regionFolder(dir, region), ErrFolder, e.Name())
		}
		d := policy.TimeOf(at)
		// A folder is created before its file: a killed recorder may leave it empty.
		if _, err := os.Stat(dayPath(dir, region, d)); err == nil {
			all = append(all, d)
		}
	}
	slices.Sort(all)
	return all, nil
}

// openDay reads a file. It returns an error unless a recorder wrote the file and identified zones
// in the same way. An empty zones matches both ways.
func openDay(dir, region string, date policy.Time, zones string) (*dayFile, error) {
	f := &dayFile{path: dayPath(dir, region, date), date: date}
	var err error
	if f.t, err = trace.Open(f.path, trace.ReadOptions{}); err != nil {
		return nil, err
	}
	switch meta := f.t.Meta; {
	case meta[metaSource] != source:
		return nil, fmt.Errorf("%s: %w: it was not recorded here", f.path, ErrFolder)
	case zones != "" && meta[metaZones] != zones:
		return nil, fmt.Errorf("%s: %w: its zones are identified by %s, not by %s", f.path, ErrFolder, meta[metaZones], zones)
	}
	return f, nil
}

// newestDay returns the last file of a region; nil if the region has no files.
func newestDay(dir, region string) (*dayFile, error) {
	all, err := dates(dir, region)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return openDay(dir, region, all[len(all)-1], "")
}

// loadDays reads the recorded files from the day of from, and the last file before it, which
// contains the prices in effect at its start.
func loadDays(dir, region string, from policy.Time, zones string) ([]dayFile, error) {
	all, err := dates(dir, region)
	if err != nil {
		return nil, err
	}
	first, _ := slices.BinarySearch(all, dayOf(from))
	first = max(first-1, 0)
	var files []dayFile
	for _, d := range all[first:] {
		f, err := openDay(dir, region, d, zones)
		if err != nil {
			return nil, err
		}
		files = append(files, *f)
	}
	return files, nil
}

// writeDay writes series to the file of a day if that changes the file, and reports whether it did.
// The file is completed under a temporary name and flushed to disk before it is moved.
func (r *run) writeDay(b *book, date, from, to policy.Time, series []trace.Series) (bool, error) {
	t, err := trace.New("recording", series)
	if err != nil {
		return false, err
	}
	t.From, t.To, t.WholeFrom, t.WholeTo = from, to, from, to
	t.About = "prices recorded by spotter trace record from the APIs of AWS"
	t.Meta = map[string]string{metaSource: source, metaZones: b.zones}
	// Readers of the trace ignore the temporary file, because its name has a different suffix.
	fresh := filepath.Join(r.state, dayTemp)
	if err := trace.WriteFile(fresh, t); err != nil {
		return false, err
	}
	path := dayPath(r.config.Dir, b.region, date)
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if next, readErr := os.ReadFile(fresh); readErr != nil || err == nil && bytes.Equal(old, next) {
		return false, errors.Join(readErr, os.Remove(fresh))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, err
	}
	if err := moveFile(fresh, path); err != nil {
		return false, err
	}
	for dir := filepath.Dir(path); !strings.HasPrefix(filepath.Base(dir), "provider="); { // the folders may be new
		dir = filepath.Dir(dir)
		if err := syncPath(dir); err != nil {
			return false, err
		}
	}
	return true, syncPath(r.config.Dir)
}

// dayTemp is the temporary name of the file of a day.
const dayTemp = "day.new"

// sweep removes the incomplete files of a killed recorder.
func (r *Recorder) sweep() error {
	for _, pattern := range []string{"*.new", ".*.new-*"} {
		left, err := filepath.Glob(filepath.Join(r.state, pattern))
		if err != nil {
			return err
		}
		for _, path := range left {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// moveFile moves a complete file to path. A crash leaves either the old or the new file there.
func moveFile(from, path string) error {
	if err := syncPath(from); err != nil {
		return err
	}
	if err := os.Rename(from, path); err != nil {
		return err
	}
	return syncPath(filepath.Dir(path))
}

// writeWhole replaces a file. A crash leaves either the old or the new file.
func writeWhole(path string, content []byte) error {
	temp := path + ".new"
	if err := os.WriteFile(temp, content, 0o644); err != nil {
		return err
	}
	return moveFile(temp, path)
}
