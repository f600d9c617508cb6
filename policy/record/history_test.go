package record

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

func TestHistory(t *testing.T) {
	r := quiet(t) // steps from minute 10 to 50; a launch and the drain of node a at minute 20
	for name, c := range map[string]struct {
		q           Query
		from, until policy.Time
		want        string
	}{
		"all":        {want: "2 launch for web in next-door: share; 2 drain a: cheaper, next door ($0.04/h → $0.01/h)"},
		"of a node":  {q: Query{Node: "a"}, want: "2 drain a: cheaper, next door ($0.04/h → $0.01/h)"},
		"of another": {q: Query{Node: "b"}, want: ""},
		"from then":  {q: Query{Node: "a"}, from: 1_200_000, want: "2 drain a: cheaper, next door ($0.04/h → $0.01/h)"},
		"until then": {q: Query{Node: "a"}, until: 1_200_000, want: ""},
		"from later": {q: Query{Node: "a"}, from: 1_200_001, want: ""},
		"until after it": {q: Query{Pool: "web"}, from: 1, until: 1_200_001,
			want: "2 launch for web in next-door: share; 2 drain a: cheaper, next door ($0.04/h → $0.01/h)"},
		"of time outside": {q: Query{Node: "z"}, from: 1 << 40, want: ""},
	} {
		entries, err := r.History(c.q, c.from, c.until)
		var lines []string
		for _, x := range entries {
			lines = append(lines, fmt.Sprintf("%d %s", x.Step, x.Line))
		}
		if got := strings.Join(lines, "; "); err != nil || got != c.want {
			t.Errorf("%s: %q, want %q: %v", name, got, c.want, err)
		}
	}
	if _, err := r.History(Query{Node: "z"}, 0, 0); !errors.Is(err, ErrNoSuch) || !strings.Contains(err.Error(), "the last step has b") {
		t.Errorf("a node that was never there: %v", err)
	}
}
