package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/scenarios"
)

// An auditor is a RunObserver that holds what is reported to it against what was reported
// before.
type auditor struct {
	entries map[string]int
	nodes   map[policy.NodeID]string
	last    Sample
	until   policy.Time
	bad     error
}

func (w *auditor) complain(format string, args ...any) {
	if w.bad == nil {
		w.bad = fmt.Errorf(format, args...)
	}
}

func (w *auditor) Happened(e Entry) {
	if w.entries == nil {
		w.entries = map[string]int{}
	}
	w.entries[e.Kind]++
	if e.At < w.until {
		w.complain("%s of %s at %v comes after %v was settled", e.Kind, e.Subject, e.At, w.until)
	}
}

func (w *auditor) Settled(m *Moment) {
	if m.Now < w.until || m.Next < m.Now {
		w.complain("settled %v up to %v after %v", m.Now, m.Next, w.until)
	}
	w.until = m.Next
	if w.nodes == nil {
		w.nodes = map[policy.NodeID]string{}
	}
	for _, id := range m.Nodes() {
		delete(w.nodes, id)
		if n, requested, pods, ok := m.Node(id); ok {
			w.nodes[id] = n.Name
			if !requested.Within(n.Allocatable) || pods < 0 {
				w.complain("%s holds %d pods of %+v", n.Name, pods, requested)
			}
		}
	}
	if m.Now-w.last.At < policy.Time(time.Hour/time.Millisecond) && m.Now != m.Next {
		return
	}
	s := m.Costs(m.Now)
	if s.Bill < w.last.Bill || s.OutageCost < w.last.OutageCost || s.Outage < w.last.Outage ||
		s.PodsAffected < w.last.PodsAffected || s.Evictions < w.last.Evictions {
		w.complain("%+v is less than %+v", s, w.last)
	}
	w.last = s
	alive := 0
	for i := range m.watch.cluster.Nodes.All {
		if _, _, _, ok := m.Node(policy.NodeID(i)); ok {
			alive++
			if m.watch.cluster.Nodes.All[i].Name != w.nodes[policy.NodeID(i)] {
				w.complain("at %v nobody reported %s", m.Now, m.watch.cluster.Nodes.All[i].Name)
			}
		}
	}
	if alive != len(w.nodes) {
		w.complain("at %v %d nodes are there, %d were told of", m.Now, alive, len(w.nodes))
	}
}

// against returns what does not agree between what the auditor saw and the result.
func (w *auditor) against(res *Result) error {
	last := Sample{At: res.Window.To, Bill: res.Bill, OutageCost: res.OutageCost, Outages: res.Outages,
		Notices: res.Notices, Reclaims: res.Reclaims, Evictions: res.VoluntaryEvictions,
		Nodes: w.last.Nodes, SpotNodes: w.last.SpotNodes, Size: w.last.Size, SpotSize: w.last.SpotSize}
	switch {
	case w.bad != nil:
		return w.bad
	case w.last != last:
		return fmt.Errorf("the end came to %+v, the result is %+v", w.last, last)
	case len(res.Samples) > 0 && res.Samples[len(res.Samples)-1] != last:
		return fmt.Errorf("the last sample is %+v, the result is %+v", res.Samples[len(res.Samples)-1], last)
	case int64(w.entries["step"]) != res.Decisions:
		return fmt.Errorf("told of %d steps of %d", w.entries["step"], res.Decisions)
	}
	return nil
}

// playWatched runs cfg with and without an observer and samples. The observer changes nothing,
// and what it records adds up to the result.
func playWatched(t *testing.T, cfg Config, spec string) *Result {
	t.Helper()
	cfg.Policy, cfg.Forecaster = mustPolicy(t, spec), mustForecaster(t)
	plain := mustRun(t, cfg)
	w := &auditor{}
	cfg.Policy, cfg.Forecaster, cfg.Observer, cfg.Sample = mustPolicy(t, spec), mustForecaster(t), w, time.Hour
	res := mustRun(t, cfg)
	if plain.Hash != res.Hash || plain.Events != res.Events {
		t.Errorf("watched, the run has another hash, %x and not %x, or other events", res.Hash[:4], plain.Hash[:4])
	}
	if err := w.against(res); err != nil {
		t.Error(err)
	}
	if len(plain.Samples) != 0 || len(plain.Taken) != 0 {
		t.Errorf("%d samples and %d reclaims were kept unasked", len(plain.Samples), len(plain.Taken))
	}
	if len(plain.Held) != 0 {
		t.Errorf("%d numbers of nodes were kept unasked", len(plain.Held))
	}
	if err := heldAddsUp(res); err != nil {
		t.Error(err)
	}
	if int64(len(res.Taken)) != res.Reclaims {
		t.Errorf("%d reclaims are kept of %d", len(res.Taken), res.Reclaims)
	}
	return res
}

// heldAddsUp reports whether the nodes by market are at each sample as many as it has.
func heldAddsUp(res *Result) error {
	by, next := map[policy.MarketID]int64{}, 0
	for _, s := range res.Samples {
		sum := int64(0)
		for ; next < len(res.Held) && res.Held[next].At <= s.At; next++ {
			x := res.Held[next]
			if by[x.Market] == x.Nodes {
				return fmt.Errorf("%+v says what was so before", x)
			}
			by[x.Market] = x.Nodes
		}
		for _, n := range by {
			sum += n
		}
		if sum != s.Nodes {
			return fmt.Errorf("at %v there are %d nodes by market, and %d in all", s.At, sum, s.Nodes)
		}
	}
	if next == 0 || next < len(res.Held) {
		return fmt.Errorf("%d of %d numbers of nodes stand at a sample", next, len(res.Held))
	}
	return nil
}

// TestWatch plays scenarios of every kind that bills or fails in a way of its own.
func TestWatch(t *testing.T) {
	auctions := war().seeded(6)
	jobs := newBuilder(48 * time.Hour)
	jobs.w.Intensity = 60
	jobs.markets(2, 2, true)
	jobs.pool("p")
	jobs.trainer()
	for name, w := range map[string]*scenarios.BoundScenario{"stormy": stormy(60), "auctions": auctions,
		"commitments": reserve(2), "jobs": jobs.scenario()} {
		for _, spec := range []string{"on-demand", "spot", "spotvortex"} {
			t.Run(name+" "+spec, func(t *testing.T) {
				playWatched(t, Config{Prepared: mustPrepare(t, w), Seed: 3}, spec)
			})
		}
	}
}

// TestSamples: three nodes of $0.20 cost $0.60 an hour. Samples are taken at whole multiples of
// the interval and at the end, which is not a multiple here.
func TestSamples(t *testing.T) {
	cfg := Config{Prepared: mustPrepare(t, calmScenario()), Policy: mustPolicy(t, "on-demand"), Seed: 1, Sample: 7 * time.Hour}
	res := mustRun(t, cfg)
	var want []Sample
	for hours := time.Duration(0); hours < 55; hours += 7 {
		h := min(hours, 48)
		want = append(want, Sample{At: testStart.Add(h * time.Hour), Bill: 600_000 * policy.Money(h), Nodes: 3, Size: 12})
	}
	if !slices.Equal(res.Samples, want) {
		t.Errorf("got %+v, want %+v", res.Samples, want)
	}
}

// TestSampleIsTheEnd: a sample equals the result of the run if it had ended then: a window cut
// short at a sample has the same bill and outage cost. Only jobs look ahead to the end, and these
// scenarios have no jobs.
func TestSampleIsTheEnd(t *testing.T) {
	for _, spec := range []string{"spot", "static:share=0.9"} {
		long := mustRun(t, Config{Prepared: mustPrepare(t, stormy(60)), Policy: mustPolicy(t, spec),
			Forecaster: mustForecaster(t), Seed: 4, Sample: 13 * time.Hour})
		if long.OutageCost == 0 || long.Interruptions == 0 {
			t.Fatalf("%s: nothing failed", spec)
		}
		for _, s := range long.Samples[1:] {
			st := mustPrepare(t, stormy(60))
			st.Window = billing.Span{From: st.Window.From, To: s.At}
			wide := mustPrepare(t, stormy(60))
			w, err := wide.DrawWeather(4)
			if err != nil {
				t.Fatal(err)
			}
			short := mustRun(t, Config{Prepared: st, Weather: w, Policy: mustPolicy(t, spec), Forecaster: mustForecaster(t), Seed: 4})
			if short.Bill != s.Bill || short.OutageCost != s.OutageCost || short.Outages != s.Outages ||
				short.Notices != s.Notices || short.Reclaims != s.Reclaims || short.VoluntaryEvictions != s.Evictions {
				t.Errorf("%s: ended at %v the run came to %v and %v (%+v), the sample says %+v", spec, s.At, short.Bill,
					short.OutageCost, short.Outages, s)
			}
		}
	}
}

// TestSampleRefused: a sample of a part of a millisecond, or of a millionth of the
// window, is a slip.
func TestSampleRefused(t *testing.T) {
	for _, d := range []time.Duration{-time.Hour, time.Nanosecond, time.Millisecond} {
		w := calmScenario()
		w.Duration = 400 * time.Hour
		if _, err := Run(t.Context(), Config{Prepared: mustPrepare(t, w), Policy: mustPolicy(t, "on-demand"), Seed: 1, Sample: d}); err == nil {
			t.Errorf("samples every %v are taken", d)
		}
	}
}
