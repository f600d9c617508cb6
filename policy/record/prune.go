package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A Retention says how much of a recording is kept. Zero is no limit.
type Retention struct {
	// Age is how long segments are kept after they were completed.
	Age time.Duration

	// Bytes is the most that complete segments take together.
	Bytes int64
}

// Prune removes the oldest segments of a recording that are older or more than r allows, and
// returns how many. The rest starts with a full segment, and the last full segment stays, with what
// continues it, regardless of r. spare is called for each segment; one that it spares stays with
// all after it. Nil spares none.
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

// A Segment is what is in a folder of a recording: complete, and readable by itself
// or after those that it continues.
type Segment struct {
	Number    int
	Dir       string
	Continues bool
	LastStep  int64
}

// After returns the first complete segment in dir with a greater number than the given one; false
// if there is no such segment.
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

// A group is a full segment and those that continue it.
type group struct {
	segments  []int
	bytes     int64
	completed time.Time // when the last was
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

// measure returns how large a segment is, and when its digests were written,
// which is the last thing that is.
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
