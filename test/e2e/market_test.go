package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/test/e2e/bill"
	"github.com/spotter-dev/spotter/test/karpenter"
)

// A market is one day of a trace, played k times as fast as it was.
type market struct {
	k     int64
	begin time.Time // of the day, on the clock of the machine
	day   policy.Time

	prices bill.Prices // on the clock of the machine
}

// soldTypes are the instance types that Karpenter sells in all three zones of the
// trace; on those of pairs one pod of a workload fits, so that a share of nodes is one
// of pods.
var (
	soldTypes = []string{"c5.large", "c5.xlarge", "m5.large", "m5.xlarge", "r5.large"}
	pairs     = []string{"c5.large", "m5.large", "r5.large"}
	soldZones = []string{"us-east-1a", "us-east-1b", "us-east-1c"}
)

const region = "us-east-1"

// ahead is how far a feed lets prices be ahead of its clock, less what a slow machine
// takes. What is ahead is not looked at before its time.
const ahead = 4 * time.Minute

// openMarket draws a day of the embedded trace and has it begin now. It writes what
// Spotter reads of it to a folder, as a recorder does that never stops.
func openMarket(t *testing.T, draw *rand.Rand, folder string, k int64) *market {
	t.Helper()
	all, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	const day = policy.Time(24 * time.Hour / time.Millisecond)
	days := int64((all.To - all.From) / day)
	m := &market{k: k, begin: time.Now().Truncate(time.Millisecond), day: all.From +
		day*policy.Time(draw.Int64N(days-1)), prices: bill.Prices{}}
	for i := range all.Series {
		if s := &all.Series[i]; slices.Contains(soldTypes, s.Type) && slices.Contains(soldZones, s.Zone) {
			m.add(t, s)
		}
	}
	if want := 2 * len(soldTypes) * len(soldZones); len(m.prices) != want {
		t.Fatalf("the trace has prices of %d markets, want %d", len(m.prices), want)
	}
	m.record(t, folder)
	t.Logf("%s  begins: %s of the trace, %d times as fast", m.clock(), m.day, k)
	return m
}

// add takes the prices of one type in one zone.
func (m *market) add(t *testing.T, s *trace.Series) {
	t.Helper()
	onDemand, known := catalog.OnDemand(catalog.AWS, region, s.Type)
	if !known {
		t.Fatalf("the catalog knows no price of %s", s.Type)
	}
	spot := []bill.Price{{From: m.begin.Add(-12 * time.Hour).UnixMilli()}}
	for i, at := range s.At {
		switch {
		case at <= m.day:
			spot[0].MicroDollars = int64(s.Spot[i])
		default:
			spot = append(spot, bill.Price{From: m.begin.UnixMilli() + int64(at-m.day)/m.k, MicroDollars: int64(s.Spot[i])})
		}
	}
	m.prices[s.Type+"/"+s.Zone+"/"+bill.Spot] = spot
	m.prices[s.Type+"/"+s.Zone+"/"+bill.OnDemand] = []bill.Price{{From: spot[0].From, MicroDollars: int64(onDemand)}}
}

// record writes the trace that Spotter reads, and keeps extending it until the test ends.
func (m *market) record(t *testing.T, folder string) {
	t.Helper()
	if err := m.save(folder); err != nil {
		t.Fatal(err)
	}
	go func() {
		for tick := time.NewTicker(ahead / 4); ; {
			select {
			case <-t.Context().Done():
				tick.Stop()
				return
			case <-tick.C:
			}
			if err := m.save(folder); err != nil && t.Context().Err() == nil {
				t.Errorf("recording prices: %v", err)
			}
		}
	}()
}

// save writes the prices up to a little after now.
func (m *market) save(folder string) error {
	end := time.Now().Add(ahead).UnixMilli()
	var all []trace.Series
	for _, kind := range soldTypes {
		onDemand := policy.Money(m.prices[kind+"/"+soldZones[0]+"/"+bill.OnDemand][0].MicroDollars)
		for _, zone := range soldZones {
			s := trace.Series{Provider: catalog.AWS, Region: region, Zone: zone, Type: kind}
			for _, p := range m.prices[kind+"/"+zone+"/"+bill.Spot] {
				if p.From <= end {
					s.At, s.Spot, s.OnDemand = append(s.At, policy.Time(p.From)), append(s.Spot, policy.Money(p.MicroDollars)), append(s.OnDemand, onDemand)
				}
			}
			all = append(all, s)
		}
	}
	x, err := trace.New("prices", all)
	if err != nil {
		return err
	}
	x.About, x.WholeTo = "a day that is played", policy.Time(end)
	x.To = x.WholeTo
	return trace.Write(folder, x)
}

// at returns when an hour of the day is.
func (m *market) at(hour float64) time.Time {
	return m.begin.Add(time.Duration(hour * float64(time.Hour) / float64(m.k)))
}

// clock returns the time of the day as the market has it.
func (m *market) clock() string {
	passed := time.Since(m.begin) * time.Duration(m.k)
	return fmt.Sprintf("%02d:%02d", int(passed.Hours()), int(passed.Minutes())%60)
}

// types is what the provider of Karpenter sells.
func (m *market) types(t *testing.T) []any {
	t.Helper()
	var all []any
	for _, kind := range soldTypes {
		x, ok := catalog.Lookup(catalog.AWS, kind)
		if !ok {
			t.Fatalf("the catalog does not know %s", kind)
		}
		var offers []karpenter.Offer
		for _, zone := range soldZones {
			for _, capacity := range []string{bill.Spot, bill.OnDemand} {
				price := m.prices[kind+"/"+zone+"/"+capacity][0].MicroDollars
				offers = append(offers, karpenter.Offer{Zone: zone, Capacity: capacity, Price: float64(price) / 1e6})
			}
		}
		all = append(all, karpenter.Type(kind, map[string]string{
			"cpu": fmt.Sprint(x.VCPU), "memory": fmt.Sprint(x.Capacity.Memory), "ephemeral-storage": "80Gi", "pods": "29",
		}, offers))
	}
	return all
}
