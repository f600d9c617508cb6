package market

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// Counts halve every 14 days, and hours are those of the nodes that ran between two
// counts, as in the simulator: 2 launches, then 10 nodes for an hour, then 14 days
// without any, then a reclaim.
func TestExperienceDecays(t *testing.T) {
	d := newBookFixture(t, nil)
	d.report(t, Update{Spot: []Price{spot("eu-west-1a", "m5.large", noon, 0.04)}})
	d.fill(t)
	d.Meet(backend.Event{Kind: backend.MetLaunch, Market: m5a, At: d.now()})
	d.Meet(backend.Event{Kind: backend.MetLaunch, Market: m5a, At: d.now()})
	nodes := func(n int) {
		d.running(func(id policy.MarketID) int {
			if id == d.Lookup(m5a) {
				return n
			}
			return 0
		})
	}
	nodes(10)
	d.clock.Step(time.Hour)
	nodes(0)
	d.clock.Step(14 * 24 * time.Hour)
	d.Meet(backend.Event{Kind: backend.MetReclaim, Market: m5a, At: d.now()})
	e := marketOf(t, d.fill(t), m5a).Experience
	hour := math.Exp2(-1.0 / (14 * 24)) // of a half-life
	for _, c := range []struct {
		name      string
		got, want float64
	}{{"launches", e.Launches, 2 * hour / 2}, {"reclaims", e.Reclaims, 1}, {"node-hours", e.NodeHours, 10.0 / 2}} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	if e.Reclaimed != d.now() || e.At != d.now() || e.Refused != 0 {
		t.Errorf("%+v", e)
	}
	if od := marketOf(t, d.fill(t), m5d).Experience; od != (policy.Experience{}) {
		t.Errorf("the market on demand met %+v", od)
	}
}

// A burst of refusals is one; after the span the next counts. An event of a market
// that the tables do not hold is kept for when they do; one of the future is of now.
func TestRefusalsOfABurstAreOne(t *testing.T) {
	d := newBookFixture(t, nil)
	for k := range 100 {
		d.Meet(backend.Event{Kind: backend.MetRefusal, Market: m5a, At: d.now()})
		if k == 49 {
			d.clock.Step(3 * time.Minute)
		}
		d.clock.Step(time.Second)
	}
	d.Meet(backend.Event{Kind: backend.MetReclaim, Market: m5a, At: d.now().Add(time.Hour)})
	d.report(t, Update{Spot: []Price{spot("eu-west-1a", "m5.large", noon, 0.04)}})
	e := marketOf(t, d.fill(t), m5a).Experience
	if e.Refusals < 1.999 || e.Refusals > 2 || e.Refused != policy.TimeOf(noon.Add(230*time.Second)) || e.Reclaimed != d.now() {
		t.Errorf("%+v, want 2 refusals, the last 230 s after the first", e)
	}
}

// Observed events survive a restart, including the hours of the nodes that ran through it, up to
// the hour that a restart may last. The same state exports the same bytes.
func TestExportSurvivesARestart(t *testing.T) {
	d := newBookFixture(t, nil)
	u := Update{Spot: []Price{spot("eu-west-1a", "m5.large", noon, 0.04)}}
	d.report(t, u)
	d.fill(t)
	for _, kind := range []backend.EventKind{backend.MetLaunch, backend.MetRefusal, backend.MetReclaim} {
		d.Meet(backend.Event{Kind: kind, Market: m5a, At: d.now()})
	}
	d.running(func(policy.MarketID) int { return 4 })
	packed := d.Export()
	if !bytes.Equal(packed, d.Export()) {
		t.Error("two exports of the same differ")
	}
	next := newBookFixture(t, nil)
	next.clock.SetTime(noon.Add(10 * time.Hour))
	next.report(t, u)
	next.fill(t)
	if err := next.Import(packed); err != nil {
		t.Fatal(err)
	}
	e := marketOf(t, next.fill(t), m5a).Experience
	if math.Abs(e.NodeHours-4) > 0.01 || e.Refused != policy.TimeOf(noon) || e.Launches < 0.97 || e.Launches > 0.99 {
		t.Errorf("%+v, want 4 nodes for the hour that a restart may last and all else decayed by 10 hours", e)
	}
	next.clock.Step(time.Hour)
	if e := marketOf(t, next.fill(t), m5a).Experience; math.Abs(e.NodeHours-8) > 0.03 {
		t.Errorf("%v node-hours another hour on, want 8", e.NodeHours)
	}
}

// An export keeps to its size: what was met longest ago is forgotten, what runs is
// not.
func TestExportIsBounded(t *testing.T) {
	d := newBookFixture(t, func(c *Config) { c.ExportMax = 4096 })
	for k := range 3000 {
		d.clock.Step(time.Minute)
		d.Meet(backend.Event{Kind: backend.MetReclaim, Market: fmt.Sprintf("aws/r/z/t%d/spot", k*7919%3000), At: d.now()})
	}
	d.met["aws/r/z/t0/spot"].running = 1 // the first that was met
	packed := d.Export()
	if len(packed) > 4096 || len(packed) < 2048 {
		t.Errorf("%d bytes, of 4096 that it may have", len(packed))
	}
	next := newBookFixture(t, nil)
	if err := next.Import(packed); err != nil {
		t.Fatal(err)
	}
	newest := fmt.Sprintf("aws/r/z/t%d/spot", 2999*7919%3000)
	if next.met["aws/r/z/t0/spot"] == nil || next.met[newest] == nil {
		t.Error("a market with a node, or the one met last, is forgotten")
	}
}

// What is no export changes nothing.
func TestImportRefuses(t *testing.T) {
	pack := func(text string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write([]byte(text))
		z.Close()
		return b.Bytes()
	}
	d := newBookFixture(t, nil)
	d.Meet(backend.Event{Kind: backend.MetLaunch, Market: m5a, At: d.now()})
	before := d.Export()
	for _, packed := range [][]byte{
		nil, []byte("text"), before[:len(before)/2], pack("{"), pack(`{"version":2}`),
		pack(`{"version":1,"markets":[{"name":"","experience":{}}]}`),
		pack(`{"version":1,"markets":[{"name":"a","experience":{"Launches":-1}}]}`),
		pack(`{"version":1,"markets":[{"name":"a","running":-1,"experience":{}}]}`),
	} {
		if err := d.Import(packed); !errors.Is(err, ErrImport) {
			t.Errorf("%q: error %v", packed, err)
		}
	}
	if !bytes.Equal(before, d.Export()) {
		t.Error("what could not be read has changed something")
	}
}
