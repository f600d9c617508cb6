package record

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// Reading from an instant on starts with the last full segment before it, and leaves out what is
// older; an instant before the start leaves out nothing. At returns the step in force.
func TestSince(t *testing.T) {
	dir := t.TempDir()
	const minute = policy.Time(60_000)
	w, err := Resume(dir, Meta{Scenario: "live"}, Limits{Steps: 2, Whole: 40 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	begin := policy.Time(1_700_000_000_000)
	for i := range 20 { // segments of two steps, of which every second is full
		s := &policy.Snapshot{Now: begin + policy.Time(i)*10*minute, Pods: []policy.Pod{{Name: "p", Phase: policy.PodReady}}}
		if err := w.Record(t.Context(), s, &policy.Memory{Decisions: uint64(i)}, &policy.Plan{Wake: s.Now + 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for after, want := range map[policy.Time]uint64{-5 * minute: 0, 0: 0, 39 * minute: 0, 40 * minute: 4, 75 * minute: 4, 500 * minute: 16} {
		part, err := r.Since(begin + after)
		if err != nil {
			t.Fatal(err)
		}
		first, n := uint64(0), 0
		for s, err := range part.Steps() {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 1 {
				first = s.Memory.Decisions
			}
		}
		if first != want || n != 20-int(want) {
			t.Errorf("%v after the begin: %d steps from %d on, want %d", time.Duration(after)*time.Millisecond, n, first, want)
		}
		if part.Newest() != r.Newest() {
			t.Errorf("its last segment is %d, want %d", part.Newest(), r.Newest())
		}
	}
	for after, want := range map[policy.Time]uint64{0: 0, 9 * minute: 0, 10 * minute: 1, 900 * minute: 19} {
		s, err := r.At(begin + after)
		if err != nil || s.Memory.Decisions != want {
			t.Errorf("step at %v after the begin: %v, %v; want %d", time.Duration(after)*time.Millisecond, s, err, want)
		}
	}
}
