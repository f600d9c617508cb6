package portfolio

import (
	"fmt"
	"strings"
	"testing"
)

// TestEndangered: two notices are a storm where the market has 59 nodes, and one more is needed where
// it has 60. Nodes of other markets and pools are not bought for, and those in the market only once.
func TestEndangered(t *testing.T) {
	for _, x := range []struct{ nodes, noticed, drained, want int }{
		{59, 1, 0, 1},
		{59, 2, 0, 59},
		{60, 2, 0, 2},
		{60, 3, 0, 60},
		{60, 2, 1, 59}, // three make it one, and the first was bought for
		{60, 1, 3, 0},
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
node x2 zoo y a.4 spot notice
`)
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
