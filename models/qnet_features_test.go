package models_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// featuresOf returns the features of a pool by name.
func featuresOf(s *policy.Snapshot, m *policy.Memory, p policy.PoolID) map[string]float64 {
	names := models.FeatureNames(models.PoolFeaturesQ)
	row := make([]float32, len(names))
	var rows models.PoolRows
	rows.Collect(s, m)
	rows.Row(p, row)
	all := map[string]float64{}
	for i, name := range names {
		all[name] = float64(row[i])
	}
	return all
}

// TestPoolRows counts by hand: a node of four vCPUs on demand at 0.20 and two on
// spot at 0.08, so that two thirds are spot, and a vCPU there costs 0.02 and not
// 0.05; with two pods each of two workloads, one of which can spare one of four
// and the other none of one.
func TestPoolRows(t *testing.T) {
	const hour = policy.Time(3_600_000)
	s, m, err := policytest.Parse(`type b.4 4
market z b.4 on-demand 0.20
market z b.4 spot 0.08
pool web budget=4
app wide 1 replicas=4
app lone 1 replicas=1
node n1 web z b.4 on-demand
node n2 web z b.4 spot
node n3 web z b.4 spot
pod wide n1
pod wide n2
pod wide n2
pod lone n3
`)
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Markets {
		if k := &s.Markets[i]; k.Capacity == policy.Spot {
			k.OnDemand = policy.Dollars(0.20)
			k.History = []policy.Money{policy.Dollars(0.10), policy.Dollars(0.08)}
			k.Experience = policy.Experience{Refused: s.Now - hour/2, Reclaimed: s.Now - 3*hour}
		}
	}
	s.Pools[0].Refused = s.Now - hour
	m = m.With(policy.PoolMemory{Name: s.Pools[0].Name, Target: 0.9, HasTarget: true})
	got := featuresOf(s, &m, 0)
	for name, want := range map[string]float64{
		"share": 2.0 / 3, "target": 0.9, "share_max": 1, "price_best": 0.4, "price_eighth": 2, "price_held": 0.4, "price_trend": -0.2,
		"choice": math.Log(2) / 6, "refusing": 1, "since_refusal": 0.5, "since_reclaim": 0.25, "nodes": math.Log(4) / 6,
		"slack": 0.25 * 3 / 4, "slack_least": 0, "pending": 0, "jobs": 0,
	} {
		if math.Abs(got[name]-want) > 1e-4 {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}

// TestPoolRowsDoNotDependOnTheUnit doubles all prices: every feature stays. It
// also holds that features are within bounds whatever the snapshot.
func TestPoolRowsDoNotDependOnTheUnit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		m := policytest.Memory(s).Draw(t, "memory")
		for p := range s.Pools {
			before := featuresOf(s, &m, policy.PoolID(p))
			for name, x := range before {
				if !(x >= -1 && x <= 2) {
					t.Fatalf("%s of pool %d is %v", name, p, x)
				}
			}
			twice := *s
			twice.Markets = append([]policy.Market(nil), s.Markets...)
			for i := range twice.Markets {
				k := &twice.Markets[i]
				k.Price, k.Reserve, k.OnDemand = 2*k.Price, 2*k.Reserve, 2*k.OnDemand
				k.History = append([]policy.Money(nil), k.History...)
				for h := range k.History {
					if k.History[h] != policy.NoPrice {
						k.History[h] *= 2
					}
				}
			}
			for name, x := range featuresOf(&twice, &m, policy.PoolID(p)) {
				if x != before[name] {
					t.Fatalf("%s of pool %d is %v and with doubled prices %v", name, p, before[name], x)
				}
			}
		}
	})
}

// TestBuiltinActions opens the bundle that is shipped: it is whole, small, and fed
// what this program builds.
func TestBuiltinActions(t *testing.T) {
	b, err := models.Open(models.BuiltinActions(), "aws")
	if err != nil {
		t.Fatal(err)
	}
	if b.Actions == nil || b.Forecaster != nil || b.Actions.Model.Features != models.PoolFeaturesQ {
		t.Errorf("the bundle is %+v", b.Manifest)
	}
	size := 0
	for _, f := range b.Files {
		size += f.Bytes
	}
	if size > 1<<20 {
		t.Errorf("it has %d bytes", size)
	}
	if over := b.Manifest.Metrics["held_out_over_all_spot_pct_mean"]; !(over > 0) {
		t.Errorf("in scenarios that it did not learn from it saves %v points more than all on spot", over)
	}
}
