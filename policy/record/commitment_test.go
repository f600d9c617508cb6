package record

import (
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// TestQuietCommitted: of a node that was paid for it is said that its going saves
// nothing, and of one beyond what was paid for what it costs.
func TestQuietCommitted(t *testing.T) {
	const cluster = `
type a.large 4
market z a.large on-demand 0.10
market z a.large spot 0.03
pool web steer=0.5
node n1 web z a.large on-demand
node n2 web z a.large on-demand
`
	for reserved, paid := range map[string]bool{"reserved r a.large 2": true, "reserved r a.large 1": false, "": false} {
		s, m, err := policytest.Parse(cluster + reserved)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		quietNode(&b, &Step{Snapshot: s, Memory: m, Plan: policy.Plan{}}, &s.Nodes[0])
		if got := strings.Contains(b.String(), "releasing it saves nothing"); got != paid {
			t.Errorf("%q: %s", reserved, b.String())
		}
	}
}

// TestQuietUncommitted: for a Spot node the output has the cost of an on-demand node while some of
// what was paid for is unused.
func TestQuietUncommitted(t *testing.T) {
	s, m, err := policytest.Parse(`
type a.large 4
market z a.large on-demand 0.10
market z a.large spot 0.03
reserved r a.large 1
pool web steer=0.5
node n1 web z a.large spot
`)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	quietNode(&b, &Step{Snapshot: s, Memory: m, Plan: policy.Plan{}}, &s.Nodes[0])
	if want := "as on-demand it would cost $0.00/h, $0.03/h less"; !strings.Contains(b.String(), want) {
		t.Errorf("%q is missing in\n%s", want, b.String())
	}
}
