package market

import (
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// pool returns a Karpenter pool.
func pool(change func(*v1alpha1.CapacityPool)) *v1alpha1.CapacityPool {
	p := &v1alpha1.CapacityPool{}
	p.Name = "p"
	p.Spec.Backend.Karpenter = &v1alpha1.KarpenterBackend{}
	change(p)
	return p
}

// A pool takes what its manifest allows at the current prices and scores, Spot and on-demand, in
// the region of its cluster; markets of several providers are listed next to each other.
func TestChoose(t *testing.T) {
	d := newBookFixture(t, nil)
	far := spot("us-east-1a", "m5.large", noon, 0.03)
	far.Region = "us-east-1"
	class := Price{Provider: "rackspace", Region: "us-central-dfw-1", Zone: "us-central-dfw-1", Type: "gp.vs1.large-dfw",
		At: policy.TimeOf(noon), Price: policy.Dollars(0.01), Reserve: policy.Dollars(0.005)}
	d.report(t, Update{
		Spot: []Price{
			spot("eu-west-1a", "m5.large", noon, 0.04), spot("eu-west-1b", "m5.large", noon, 0.04), spot("eu-west-1a",
				"c5.large", noon, 0.03), far, class,
		},
		Scores: []PublishedScore{{"aws", "eu-west-1", "eu-west-1b", "m5.large", 2}},
	})
	s := d.fill(t)
	names := func(p *v1alpha1.CapacityPool) string {
		var all []string
		for _, id := range d.Choose(p) {
			m := &s.Markets[id]
			all = append(all, strings.Join(strings.Split(m.Name, "/")[2:], "/"))
		}
		return strings.Join(all, " ")
	}
	price, nothing, score := 0.01, 0.009, int32(3)
	for _, c := range []struct {
		name   string
		change func(*v1alpha1.CapacityPool)
		want   string
	}{
		{"all of the fullest region", func(*v1alpha1.CapacityPool) {},
			"eu-west-1a/c5.large/on-demand eu-west-1a/c5.large/spot eu-west-1a/m5.large/on-demand eu-west-1a/m5.large/spot eu-west-1b/m5.large/on-demand eu-west-1b/m5.large/spot"},
		{"a zone", func(p *v1alpha1.CapacityPool) { p.Spec.Markets.Zones = []string{"eu-west-1b"} },
			"eu-west-1b/m5.large/on-demand eu-west-1b/m5.large/spot"},
		{"a price", func(p *v1alpha1.CapacityPool) { p.Spec.Markets.MaxPrice = &price },
			"eu-west-1a/c5.large/on-demand eu-west-1a/c5.large/spot"},
		{"a price that spot never has", func(p *v1alpha1.CapacityPool) { p.Spec.Markets.MaxPrice = &nothing }, ""},
		{"a score", func(p *v1alpha1.CapacityPool) {
			p.Spec.Markets.MinPlacementScore = &score
			p.Spec.Markets.Families = []string{"m5"}
		}, "eu-west-1a/m5.large/on-demand eu-west-1a/m5.large/spot"},
		{"another provider", func(p *v1alpha1.CapacityPool) {
			p.Spec.Backend = v1alpha1.Backend{Rackspace: &v1alpha1.RackspaceBackend{Cloudspace: "c"}}
		}, "us-central-dfw-1/gp.vs1.large-dfw/on-demand us-central-dfw-1/gp.vs1.large-dfw/spot"},
	} {
		if got := names(pool(c.change)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if m := &s.Markets[d.Lookup("rackspace/us-central-dfw-1/us-central-dfw-1/gp.vs1.large-dfw/spot")]; !m.Auction() ||
		m.Reserve != policy.Dollars(0.005) {
		t.Errorf("%+v", m)
	}
	d.Place("", "aws", "us-east-1")
	if got := names(pool(func(*v1alpha1.CapacityPool) {})); got != "us-east-1a/m5.large/on-demand us-east-1a/m5.large/spot" {
		t.Errorf("in the region that was reported: %s", got)
	}
}

// Once it knows the pools the tables hold what they may buy, whatever it costs just
// now, and what nodes run on.
func TestUse(t *testing.T) {
	d := newBookFixture(t, nil)
	d.report(t, Update{Spot: []Price{spot("eu-west-1a", "m5.large", noon, 0.04),
		spot("eu-west-1a", "c5.large", noon, 0.03), spot("eu-west-1a", "r5.large", noon, 0.03)}})
	d.fill(t)
	d.running(func(id policy.MarketID) int {
		if id == d.table.sold[2][0] {
			return 3
		}
		return 0
	})
	price := 0.001
	d.Use([]*v1alpha1.CapacityPool{pool(func(p *v1alpha1.CapacityPool) {
		p.Spec.Markets.Families, p.Spec.Markets.MaxPrice = []string{"m5"}, &price
	})})
	if got := len(d.fill(t).Types); got != 2 {
		t.Errorf("%d types, want m5.large of the pool and r5.large of the nodes", got)
	}
	if d.Find("aws", "eu-west-1", "eu-west-1a", "c5.large", policy.Spot) != policy.None {
		t.Error("a market of no pool is held")
	}
	if got := len(d.fill(t).Types); got != 3 {
		t.Errorf("%d types after a node of the third was asked for", got)
	}
}

// Nobody sells at a price on demand that was derived: it serves for comparison, and a
// market on demand is offered once its price is published.
func TestModelledIsNotOffered(t *testing.T) {
	d := newBookFixture(t, nil)
	class := Price{Provider: "rackspace", Region: "us-central-dfw-1", Zone: "us-central-dfw-1", Type: "gp.vs1.large-dfw",
		At: policy.TimeOf(noon), Price: policy.Dollars(0.01), Reserve: policy.Dollars(0.005)}
	d.report(t, Update{Spot: []Price{class, spot("eu-west-1a", "m5.large", noon, 0.04)}})
	for _, published := range []bool{false, true} {
		if published {
			d.report(t, Update{OnDemand: []OnDemandPrice{{Provider: class.Provider, Region: class.Region, Type: class.Type,
				Price: policy.Dollars(0.05)}}})
		}
		s := d.fill(t)
		for i := range s.Markets {
			m := &s.Markets[i]
			if want := m.Provider == "aws" || m.Capacity == policy.Spot || published; m.Offered != want || m.OnDemand <= 0 {
				t.Errorf("with a published price %t: %s is offered %t, at %v on demand", published, m.Name, m.Offered, m.OnDemand)
			}
		}
	}
}
