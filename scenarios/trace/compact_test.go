package trace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// inParts makes a compact trace of the one at src with no more than `most` rows in memory.
func inParts(t testing.TB, src, dir string, most int64) *Index {
	t.Helper()
	c, err := newCompaction(t.Context(), src, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.most, c.groupsMost = most, 3
	index, err := c.run(dir)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// compacted makes a compact trace of tr by way of a folder.
func compacted(t testing.TB, tr *Trace) (dir string, index *Index) {
	t.Helper()
	dir = t.TempDir()
	if err := Write(filepath.Join(dir, "folder"), tr); err != nil {
		t.Fatal(err)
	}
	index, err := Compact(t.Context(), filepath.Join(dir, "folder"), nil, filepath.Join(dir, "compact"))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "compact"), index
}

func TestCompactHoldsTheSame(t *testing.T) {
	for seed := range uint64(12) {
		want := small(t)
		if seed > 0 {
			want = random(t, seed)
		}
		dir, index := compacted(t, want)
		for i := range want.Series {
			want.Series[i].fillOnDemand()
		}
		if err := want.order(); err != nil {
			t.Fatal(err)
		}
		got, err := Open(dir, ReadOptions{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got.Name = want.Name
		if !reflect.DeepEqual(got, want) {
			t.Errorf("seed %d: read\n%+v\nwanted\n%+v", seed, got, want)
		}
		if index.Digest != want.Digest || index.From != want.From || index.To != want.To || index.Markets != int64(len(want.Series)) {
			t.Errorf("seed %d: index %+v of %+v", seed, index, want)
		}
		again, err := Compact(t.Context(), dir, nil, dir)
		if err != nil || !reflect.DeepEqual(again, index) {
			t.Errorf("seed %d: made compact again: %+v, %v; before %+v", seed, again, err, index)
		}
		// However little is in memory, only row groups differ.
		for _, most := range []int64{1, 20, 100} {
			parts := filepath.Join(t.TempDir(), "parts")
			index := inParts(t, dir, parts, most)
			got, err := Open(parts, ReadOptions{})
			if err != nil || index.Digest != want.Digest || index.Rows != again.Rows || index.Markets != again.Markets {
				t.Fatalf("seed %d, %d rows at once: %+v, %v", seed, most, index, err)
			}
			got.Name = want.Name
			if !reflect.DeepEqual(got, want) {
				t.Errorf("seed %d, %d rows at once: read\n%+v\nwanted\n%+v", seed, most, got, want)
			}
		}
	}
}

// Whole zones are in memory at once, or types of one that has too many rows, and never a part
// of one zone with another.
func TestTogether(t *testing.T) {
	c := &compaction{most: 10, rows: map[[4]string]int64{}}
	var kinds [][4]string
	for _, x := range []struct {
		zone, kind string
		rows       int64
	}{{"a", "x", 4}, {"b", "x", 3}, {"b", "y", 3}, {"c", "x", 6}, {"c", "y", 4}, {"c", "z", 1}, {"d", "x", 2}, {"e", "x",
		99}, {"e", "y", 1}, {"f", "x", 1}} {
		kind := [4]string{"p", "r", x.zone, x.kind}
		kinds, c.rows[kind] = append(kinds, kind), x.rows
	}
	var ends []int
	for end := 0; end < len(kinds); {
		end = c.together(kinds, end)
		ends = append(ends, end)
	}
	if want := []int{3, 5, 6, 7, 8, 9, 10}; !reflect.DeepEqual(ends, want) {
		t.Errorf("parts end at %v, want %v", ends, want)
	}
}

// Nothing is left of what is broken off.
func TestCompactBrokenOff(t *testing.T) {
	dir := t.TempDir()
	if err := Write(filepath.Join(dir, "folder"), small(t)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c, err := newCompaction(ctx, filepath.Join(dir, "folder"), nil)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := c.run(filepath.Join(dir, "compact")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Error(left, err)
	}
}

// What an unknown on-demand price is taken for does not depend on what is read.
func TestOnDemandIsFilled(t *testing.T) {
	s := Series{
		At: []policy.Time{1, 2, 3, 4, 5}, Spot: []policy.Money{7, 7, 8, 8, 9},
		OnDemand: []policy.Money{0, 20, 0, 30, 0},
	}
	s.fillOnDemand()
	if fmt.Sprint(s.At) != fmt.Sprint([]policy.Time{1, 3, 4, 5}) || !reflect.DeepEqual(s.OnDemand, []policy.Money{20, 20, 30, 30}) {
		t.Errorf("%+v", s)
	}
}

// A part of a compact trace is that part of the whole, and has the digest of the whole.
func TestPartsOfCompact(t *testing.T) {
	for seed := range uint64(8) {
		tr := random(t, seed+200)
		for i := range tr.Series {
			for k := range tr.Series[i].At { // over several months
				tr.Series[i].At[k] = at(1, 0) + 9*(tr.Series[i].At[k]-at(1, 0))
			}
		}
		tr, err := New("long", tr.Series)
		if err != nil {
			t.Fatal(err)
		}
		dir, index := compacted(t, tr)
		whole, err := Open(dir, ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for d := 2; d < 70; d += 11 {
			o := ReadOptions{From: at(d, 5), To: at(d+2, 7), Zones: []string{"a", "b"}, Types: []string{"t0", "t2", "t3"}}
			part, err := Open(dir, o)
			if errors.Is(err, ErrEmpty) {
				continue
			}
			if err != nil || part.Digest != index.Digest || part.WholeFrom != index.From || part.WholeTo != index.To {
				t.Fatalf("seed %d, day %d: %+v, %v", seed, d, part, err)
			}
			wanted := *whole
			wanted.Series = nil
			for _, s := range whole.Series {
				if s.Zone != "c" && s.Type != "t1" && s.Type != "t4" {
					wanted.Series = append(wanted.Series, s)
				}
			}
			if len(part.Series) > len(wanted.Series) {
				t.Errorf("seed %d, day %d: read %d of %d markets", seed, d, len(part.Series), len(wanted.Series))
			}
			checkWindow(t, &wanted, part, o)
		}
	}
}

func TestIndexThatDoesNotFit(t *testing.T) {
	month := filepath.Join("provider=aws", "region=us-east-1", "month=2026-01", "part-0.parquet")
	for name, damage := range map[string]func(dir string) error{
		"lists 4 files":     func(dir string) error { return os.Remove(filepath.Join(dir, month)) },
		"does not list":     func(dir string) error { return os.Link(filepath.Join(dir, month), filepath.Join(dir, "more.parquet")) },
		"and not the":       func(dir string) error { return os.Truncate(filepath.Join(dir, month), 100) },
		"invalid character": func(dir string) error { return os.WriteFile(filepath.Join(dir, IndexName), []byte("{]"), 0o644) },
		"version 9": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, IndexName), []byte(`{"version":9}`), 0o644)
		},
		"do not fit the digest": func(dir string) error {
			text, err := os.ReadFile(filepath.Join(dir, IndexName))
			if err != nil {
				return err
			}
			i := strings.Index(string(text), `"digest": "`) + len(`"digest": "`)
			text[i] = 'a' + (text[i]+1)%2
			return os.WriteFile(filepath.Join(dir, IndexName), text, 0o644)
		},
	} {
		dir, index := compacted(t, small(t))
		if len(index.Sizes) < 2 {
			t.Fatalf("%+v", index)
		}
		if err := damage(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, ReadOptions{}); err == nil || !strings.Contains(err.Error(),
			strings.Replace(name, "4", fmt.Sprint(len(index.Sizes)), 1)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
