package record

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// resumed returns a writer whose segments have two steps, with a full segment each hour.
func resumed(t *testing.T, dir string, meta Meta) *Writer {
	t.Helper()
	w, err := Resume(dir, meta, Limits{Steps: 2, Whole: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func record(t *testing.T, w *Writer, steps []*Step) {
	t.Helper()
	for _, s := range steps {
		if err := w.Record(t.Context(), s.Snapshot, &s.Memory, &s.Plan); err != nil {
			t.Fatal(err)
		}
	}
}

func equalSteps(t *testing.T, want, got []*Step, seed uint64) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%d steps read, want %d; repeat with -seed=%d", len(got), len(want), seed)
	}
	for i := range want {
		a, b := *want[i], *got[i]
		a.Meta, b.Meta, a.Number, b.Number = nil, nil, 0, 0
		if path := unequal(reflect.ValueOf(a), reflect.ValueOf(b), fmt.Sprintf("step %d", i)); path != "" {
			t.Fatalf("%s differs; repeat with -seed=%d", path, seed)
		}
	}
}

func whole(t *testing.T, dir string) (numbers []int) {
	t.Helper()
	found, err := list(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range found.finished {
		_, continues, err := metaOf(segmentDir(dir, n))
		if err != nil {
			t.Fatal(err)
		}
		if !continues {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// Segments that continue each other return exactly the recorded steps, also across a restart in the
// middle, under another version and policy, that leaves out a number and starts with a full
// segment.
func TestSegmentsContinue(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	want := steps(t, rand.New(rand.NewPCG(seed, 0)), 21)
	for i := range want { // ten minutes apart: six to an hour
		want[i].Snapshot.Now = policy.Time(1_700_000_000_000 + i*600_000)
		for k := range want[i].Snapshot.Markets {
			want[i].Snapshot.Markets[k].History = nil
			want[i].Snapshot.Markets[k].Offered = false
		}
	}
	dir := t.TempDir()
	w := resumed(t, dir, testMeta)
	record(t, w, want[:13])
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	later := testMeta
	later.Version, later.Policy = "v2", "spot"
	w = resumed(t, dir, later)
	record(t, w, want[13:])
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got := read(t, dir)
	equalSteps(t, want, got, seed)
	if got[12].Number != 13 || got[13].Number != 15 || *got[12].Meta != testMeta || *got[13].Meta != later {
		t.Errorf("around the restart: steps %d and %d, of %+v and %+v", got[12].Number, got[13].Number, *got[12].Meta, *got[13].Meta)
	}
	// 13 steps are segments 1…7, full at the first, seventh and thirteenth step; those after the
	// restart are 8…11, full at once and six steps later.
	if got := fmt.Sprint(whole(t, dir)); got != "[1 4 7 8 11]" {
		t.Errorf("segments %s begin anew", got)
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	last, err := r.Last()
	if err != nil {
		t.Fatal(err)
	}
	equalSteps(t, want[20:], []*Step{last}, seed)
}

// What retention leaves starts with a full segment, and a reader that listed the folder before
// reads that much.
func TestPrune(t *testing.T) {
	dir := t.TempDir()
	w := resumed(t, dir, testMeta)
	var all []*Step
	for i := range 20 {
		s := small(policy.Time(1_700_000_000_000 + i*600_000))
		s.Snapshot.Pods = []policy.Pod{{Name: fmt.Sprint("p", i), Phase: policy.PodReady}}
		all = append(all, s)
	}
	record(t, w, all)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := Open(dir) // segments 1…10, full at 1, 4, 7 and 10
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	keep := Retention{Age: time.Hour}
	if n, err := Prune(dir, keep, now.Add(30*time.Minute), nil); err != nil || n != 0 {
		t.Errorf("%d removed before their time, %v", n, err)
	}
	late := now.Add(2 * time.Hour)
	if n, err := Prune(dir, keep, late, func(n int) bool { return n == 5 }); err != nil || n != 3 {
		t.Errorf("%d removed ahead of one that is spared, want 3: %v", n, err)
	}
	if got := read(t, dir); len(got) != 14 || got[0].Number != 7 || got[0].Snapshot.Pods[0].Name != "p6" {
		t.Errorf("%d steps from %d on, want 14 from 7", len(got), got[0].Number)
	}
	n := 0
	for s, err := range before.Steps() {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 1 && s.Number != 7 {
			t.Errorf("a reader from before begins at step %d", s.Number)
		}
	}
	if n != 14 {
		t.Errorf("a reader from before has %d steps", n)
	}
	// The last group stays however little is allowed.
	if n, err := Prune(dir, Retention{Bytes: 1}, now, nil); err != nil || n != 6 {
		t.Errorf("%d removed, want 6: %v", n, err)
	}
	if got := read(t, dir); len(got) != 2 || got[0].Number != 19 {
		t.Errorf("%d steps remain", len(got))
	}
}

// A segment in the middle that is gone is an error and not a shorter recording.
func TestSegmentsMissing(t *testing.T) {
	dir := t.TempDir()
	w := resumed(t, dir, testMeta)
	for i := range 6 {
		record(t, w, []*Step{small(policy.Time(1_700_000_000_000 + i))})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(segmentDir(dir, 2)); err != nil {
		t.Fatal(err)
	}
	if err := readAll(dir); !errors.Is(err, ErrCorrupt) {
		t.Errorf("reading without segment 2: %v", err)
	}
	if err := os.RemoveAll(segmentDir(dir, 1)); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Last(); !errors.Is(err, ErrNoRecording) {
		t.Errorf("only segments that continue others: %v", err)
	}
}

// Discard frees the space, and the next writer continues with a gap.
func TestDiscard(t *testing.T) {
	dir := t.TempDir()
	w := resumed(t, dir, testMeta)
	record(t, w, []*Step{small(1), small(2), small(3)})
	if n, err := w.Discard(); n != 1 || err != nil {
		t.Errorf("%d steps lost, want 1: %v", n, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v is left, %v", entries, err)
	}
	if err := w.Write(&Entry{snapshot: &policy.Snapshot{}}); err == nil {
		t.Error("a discarded writer writes")
	}
	w = resumed(t, dir, testMeta)
	w.Skip()
	w.After(Place{Segment: 7, Step: 40})
	record(t, w, []*Step{small(4)})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, dir); len(got) != 3 || got[2].Number != 42 || w.Place() != (Place{8, 42}) {
		t.Errorf("step %d at %+v", got[len(got)-1].Number, w.Place())
	}
}

// A folder into which the last segment was copied in part is recorded to all the same: the next
// segment has the number after it.
func TestLastSegmentInPart(t *testing.T) {
	for _, whole := range []int{0, 1} {
		dir := t.TempDir()
		w := resumed(t, dir, testMeta)
		record(t, w, []*Step{small(1), small(2), small(3), small(4)}[:2*whole+2])
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(segmentDir(dir, whole+1), tableSteps+".parquet")); err != nil {
			t.Fatal(err)
		}
		w = resumed(t, dir, testMeta)
		record(t, w, []*Step{small(9)})
		if err := w.Close(); err != nil {
			t.Fatalf("after %d whole segments: %v", whole, err)
		}
		if got := read(t, dir); len(got) != 2*whole+1 || got[2*whole].Snapshot.Now != 9 || w.Place().Segment != whole+2 {
			t.Errorf("after %d whole segments: %d steps, and the end is %+v", whole, len(got), w.Place())
		}
	}
}

// An entry holds nothing of the memory and the plan, which the policy may write again.
func TestEntryCopies(t *testing.T) {
	s := &policy.Snapshot{Now: 1, Nodes: []policy.Node{{Name: "a"}}, Pools: []policy.Pool{{Name: "web"}}}
	plan := policy.Plan{Wake: 2, Drains: []policy.Drain{{Node: 0, After: []string{"x"}, Why: policy.Why{Text: "old"}}}}
	m := policy.Memory{Pools: []policy.PoolMemory{{Name: "web"}}}
	e, err := NewEntry(s, &m, &plan)
	if err != nil {
		t.Fatal(err)
	}
	plan.Drains[0].Why.Text, m.Pools[0].Name = "new", "new"
	dir := t.TempDir()
	w := newWriter(t, dir, testMeta)
	if err := errors.Join(w.Write(e), w.Close()); err != nil {
		t.Fatal(err)
	}
	if got := read(t, dir)[0]; got.Plan.Drains[0].Why.Text != "old" || got.Memory.Pools[0].Name != "web" {
		t.Errorf("the entry reads %+v, %+v", got.Plan, got.Memory)
	}
}
