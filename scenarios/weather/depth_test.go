package weather

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
)

// drawNodes draws a recording of depth that is probed every ten minutes.
func drawNodes(t *rapid.T, probed bool) *Availability {
	a := &Availability{}
	at, nodes := begin-2*hour, int32(0)
	for range rapid.IntRange(1, 60).Draw(t, "samples") {
		at += 600_000 * policy.Time(rapid.IntRange(1, 4).Draw(t, "wait"))
		if rapid.IntRange(0, 2).Draw(t, "moves") > 0 {
			nodes = int32(rapid.IntRange(0, 4).Draw(t, "nodes")) * 4
		}
		a.At, a.Nodes, a.Up = append(a.At, at), append(a.Nodes, nodes), append(a.Up, nodes > 0)
		if probed {
			a.Gap = append(a.Gap, 600_000)
		}
	}
	return a
}

// A recorded depth is what a market holds: that of the last probe from each probe
// on, and between two that differ one of theirs. Nodes are taken within three
// minutes of a fall to 0 and at no other time.
func TestRecordedDepth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		probed := rapid.Bool().Draw(t, "probed")
		a := drawNodes(t, probed)
		m := spotMarkets(1)
		m[0].Available = a
		cfg := config(rapid.Uint64().Draw(t, "seed"))
		cfg.Intensity = 40 // which changes nothing of what is recorded
		w, err := New(cfg, m)
		if err != nil {
			t.Fatal(err)
		}
		if most := int(max(1, slices.Max(a.Nodes))); w.Slots(0) != most {
			t.Fatalf("%d slots, the recording has %d", w.Slots(0), most)
		}
		for i, at := range a.At {
			if got := w.Depth(0, at); got != int(a.Nodes[i]) {
				t.Fatalf("probe %d: depth %d, recorded %v", i, got, a.Nodes)
			}
			if open := w.Open(0, at); at >= begin && open != a.Up[i] {
				t.Fatalf("probe %d: open %v, recorded %v", i, open, a.Nodes)
			}
			if i == 0 {
				continue
			}
			between := a.At[i-1] + policy.Time(rapid.Int64Range(0, int64(at-a.At[i-1]-1)).Draw(t, "between"))
			if got := int32(w.Depth(0, between)); got != a.Nodes[i-1] && (!probed || got != a.Nodes[i]) {
				t.Fatalf("before probe %d: depth %d, recorded %v", i, got, a.Nodes)
			}
			if depth, open := w.Depth(0, between), w.Open(0, between); between >= begin && open != (depth > 0) {
				t.Fatalf("before probe %d: depth %d, open %v, recorded %v", i, depth, open, a.Nodes)
			}
		}
		for slot := range w.Slots(0) {
			for _, r := range reclaims(w, 0, slot, cfg.To) {
				i := slices.IndexFunc(w.Shortages(0), func(s Shortage) bool {
					return s.From <= r.At && r.At <= s.From+policy.Time(3*time.Minute/time.Millisecond)
				})
				if i < 0 || r.Cause != CauseRecorded {
					t.Fatalf("slot %d is taken at %v by %v: %v", slot, r.At, r.Cause, w.Shortages(0))
				}
			}
		}
	})
}

// A scenario that sets the slots of all markets bounds a recorded depth.
func TestSlotsBoundDepth(t *testing.T) {
	m := spotMarkets(1)
	m[0].Available = &Availability{At: []policy.Time{begin, begin + hour, begin + 2*hour}, Up: []bool{true, true, false},
		Nodes: []int32{16, 3, 0}}
	for slots, want := range map[int][3]int{0: {16, 3, 0}, 8: {8, 3, 0}, 2: {2, 2, 0}, 40: {16, 3, 0}} {
		cfg := config(1)
		cfg.Slots = slots
		w := mustNew(t, cfg, m)
		if got := [3]int{w.Depth(0, begin), w.Depth(0, begin+hour), w.Depth(0, begin+2*hour)}; got != want {
			t.Errorf("%d slots: depths %v, want %v", slots, got, want)
		}
	}
}

// The depth is part of what a weather's digest says.
func TestDigestSeesDepth(t *testing.T) {
	m := spotMarkets(1)
	digest := func(nodes ...int32) [32]byte {
		m[0].Available = &Availability{At: []policy.Time{begin, begin + hour}, Up: []bool{true, true}, Nodes: nodes}
		return mustNew(t, config(1), m).Digest()
	}
	if digest(16, 3) == digest(16, 4) {
		t.Error("another depth, the same digest")
	}
}

// The law closes a scarce market exactly where its depth is 0, whoever asks.
func TestDepthsAreOutages(t *testing.T) {
	law := DefaultParams().Scarce
	b := newBuilder(config(3), 1)
	m := spotMarkets(60)[54]
	place := b.scarcePlace(&m, 0)
	steps := law.Depths(nil, place, begin, begin+days(60))
	var outages []Outage
	for i, s := range steps {
		if s.Nodes == 0 && i+1 < len(steps) {
			outages = append(outages, Outage{s.From, steps[i+1].From})
		}
		if i > 0 && (s.From <= steps[i-1].From || s.Nodes == steps[i-1].Nodes) || s.Nodes < 0 || s.Nodes > DepthMax {
			t.Fatalf("step %d is %v after %v", i, s, steps[max(0, i-1)])
		}
	}
	want := law.Outages(nil, place, begin, begin+days(60))
	if len(outages) == 0 || !slices.Equal(outages, want[:len(outages)]) || len(want)-len(outages) > 1 {
		t.Errorf("%d and %d outages", len(outages), len(want))
	}
}

// Markets with accelerators have a depth that moves between 1 and DepthMax while
// they are open, the others hold the same at all times. That of a scarce type is
// partial about as often as its width says, and of a milder one seldom.
func TestModelledDepth(t *testing.T) {
	cfg := config(4)
	cfg.To = begin + days(200)
	m := spotMarkets(360)
	for i := range m {
		m[i].Band = policy.Band([]int{0, 4}[i%2])
	}
	w := mustNew(t, cfg, m)
	var partial, open [2]float64
	for i := range m {
		steps := w.Steps(i)
		if !m[i].GPU {
			if len(steps) > 0 || w.Open(i, begin) && w.Depth(i, begin) != w.Slots(i) {
				t.Fatalf("%s has a depth that moves", m[i].Name)
			}
			continue
		}
		if w.Slots(i) != DepthMax || len(steps) == 0 {
			t.Fatalf("%s has %d slots and %d steps", m[i].Name, w.Slots(i), len(steps))
		}
		for at := begin; at < cfg.To; at += hour {
			depth := w.Depth(i, at)
			if w.Open(i, at) != (depth > 0) {
				t.Fatalf("%s at %v: depth %d, open %v", m[i].Name, at, depth, w.Open(i, at))
			}
			if depth > 0 {
				open[i%2]++
				if depth < DepthMax {
					partial[i%2]++
				}
			}
		}
	}
	mild, harsh := partial[0]/open[0], partial[1]/open[1]
	if mild < 0.02 || mild > 0.25 || harsh < 0.25 || harsh > 0.6 {
		t.Errorf("some of the nodes can be had in %.3f and %.3f of the time in which any can", mild, harsh)
	}
}

func TestBadDepthIsRefused(t *testing.T) {
	for _, a := range []Availability{
		{At: []policy.Time{1, 2}, Up: []bool{true, true}, Nodes: []int32{1}},
		{At: []policy.Time{1}, Up: []bool{true}, Nodes: []int32{0}},
		{At: []policy.Time{1}, Up: []bool{false}, Nodes: []int32{1}},
		{At: []policy.Time{1}, Up: []bool{true}, Nodes: []int32{-1}},
		{At: []policy.Time{1}, Up: []bool{true}, Nodes: []int32{slotsMax + 1}},
	} {
		m := spotMarkets(1)
		m[0].Available = &a
		if _, err := New(config(1), m); err == nil {
			t.Errorf("%+v is taken", a)
		}
	}
}
