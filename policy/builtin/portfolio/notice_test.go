package portfolio

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// TestEndangered: two notices are a storm where the market has 59 nodes, one of another pool, and one
// more is needed where it has 60. Nodes of other markets and pools are not bought for, and those in the
// market only once: not again when a storm shows in market y too.
func TestEndangered(t *testing.T) {
	for _, x := range []struct{ nodes, noticed, drained, want, inY int }{
		{58, 1, 0, 1, 0},
		{58, 2, 0, 58, 0},
		{59, 2, 0, 2, 0},
		{59, 3, 0, 59, 0},
		{59, 2, 1, 58, 0}, // three make it one, and the first was bought for
		{59, 1, 3, 0, 0},
		{59, 1, 3, 3, 2},
	} {
		var b strings.Builder
		b.WriteString(`type a.4 4
market y a.4 spot 0.06
market z a.4 on-demand 0.20
market z a.4 spot 0.06
pool web steer=1
pool zoo steer=1
app api 1 replicas=1
node x1 web y a.4 spot
node x2 zoo z a.4 spot
`)
		for i := range x.inY {
			fmt.Fprintf(&b, "node y%d web y a.4 spot notice\n", i)
		}
		for i := range x.nodes {
			option := ""
			switch {
			case i < x.drained:
				option = "draining notice"
			case i < x.drained+x.noticed:
				option = "notice"
			}
			fmt.Fprintf(&b, "node n%d web z a.4 spot %s\n", i, option)
		}
		d := planStateOf(t, b.String())
		if got := len(d.endangered()); got != x.want {
			t.Errorf("of %d nodes %d are under notice and %d were emptied for one: bought for are %d, want %d",
				x.nodes, x.noticed, x.drained, got, x.want)
		}
	}
}

// TestFalling: the market that loses a node is not bought in, but for one on demand, and but for a zone
// whose other market is an auction above the on-demand price.
func TestFalling(t *testing.T) {
	for _, x := range []struct {
		notice, other string
		want          bool
	}{
		{"spot", "0.08", true},
		{"on-demand", "0.08", false},
		{"spot", "0.30 auction", false},
	} {
		d := planStateOf(t, `
type a.4 4
type b.4 4
market z a.4 on-demand 0.20
market z a.4 spot 0.06
market z b.4 on-demand 0.20
market z b.4 spot `+x.other+`
pool web steer=1
app api 1 replicas=1
node n1 web z a.4 `+x.notice+` notice`)
		for i := range d.s.Markets {
			d.s.Markets[i].OnDemand = policy.Dollars(0.20)
		}
		prices := pricesByNode(d.demand, d.ledger, d.losses, d.reclaims)
		if got := slices.ContainsFunc(prices.ranked, func(r ranked) bool { return r.falling }); got != x.want {
			t.Errorf("a node %s is under notice and the other market costs %s: a market is left out: %v", x.notice, x.other, got)
		}
	}
}
