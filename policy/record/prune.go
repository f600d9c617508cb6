package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A Retention limits how much of a recording is kept. Zero means no limit.
type Retention struct {
	// Age is the time for which segments are kept after their completion.
	Age time.Duration

	// Bytes is the maximum total size of the complete segments.
	Bytes int64
}

// Prune removes the oldest segments of a recording that exceed r, and returns their number. The
// remaining recording starts with a full segment. The last full segment and those that continue it
// are always kept. If spare is not nil, it is called for each segment: a segment for which it
// returns true is kept with all later segments.
func Prune(dir string, r Retention, now time.Time, spare func(segment int) bool) (removed int, err error) {
	found, err := list(dir)
	if err != nil {
		return 0, err
	}
	groups, total, err := groupsOf(dir, found.finished)
	if err != nil {
		return 0, err
	}
	for i := 0; i < len(groups)-1; i++ {
		g := &groups[i]
		old := r.Age > 0 && now.Sub(g.completed) > r.Age
		if !old && (r.Bytes <= 0 || total <= r.Bytes) {
			break
		}
		for _, number := range g.segments {
			if spare != nil && spare(number) {
				return removed, nil
			}
		}
		for _, number := range g.segments {
			if err := os.RemoveAll(segmentDir(dir, number)); err != nil {
				return removed, fmt.Errorf("removing segment %d: %w", number, err)
			}
			removed++
		}
		total -= g.bytes
	}
	return removed, nil
}

// A Segment is a complete segment of a recording. It can be read by itself or after the segments
// that it continues.
type Segment struct {
	Number    int
	Dir       string
	Continues bool
	LastStep  int64
}

// After returns the first complete segment in dir with a number greater than the given one, and
// reports whether there is one.
func After(dir string, number int) (Segment, bool, error) {
	found, err := list(dir)
	if err != nil {
		return Segment{}, false, err
	}
	for _, n := range found.finished {
		if n <= number {
			continue
		}
		s := Segment{Number: n, Dir: segmentDir(dir, n)}
		if _, s.Continues, err = metaOf(s.Dir); err == nil {
			s.LastStep, err = lastStep(dir, n)
		}
		return s, true, err
	}
	return Segment{}, false, nil
}

// A group is a full segment and the segments that continue it.
type group struct {
	segments  []int
	bytes     int64
	completed time.Time // completion time of its last segment
}

func groupsOf(dir string, numbers []int) (groups []group, total int64, err error) {
	for _, number := range numbers {
		_, continues, err := metaOf(segmentDir(dir, number))
		if err != nil {
			return nil, 0, err
		}
		if !continues || len(groups) == 0 {
			groups = append(groups, group{})
		}
		g := &groups[len(groups)-1]
		size, at, err := measure(segmentDir(dir, number))
		if err != nil {
			return nil, 0, err
		}
		g.segments, g.bytes, g.completed = append(g.segments, number), g.bytes+size, at
		total += size
	}
	return groups, total, nil
}

// measure returns the size of a segment in bytes and its completion time, which is when its digests
// were written.
func measure(dir string) (size int64, completed time.Time, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		size += info.Size()
		if info.ModTime().After(completed) {
			completed = info.ModTime()
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = missing(err)
	}
	return size, completed, err
}
