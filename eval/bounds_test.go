package eval

import (
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/eval/oracle"
)

// TestGather: a case has the least bound with slots of its seeds.
func TestGather(t *testing.T) {
	c := &Config{Cases: make([]Case, 2), Seeds: DefaultSeeds(2)}
	a, b := oracle.Bound{Cost: 5, Short: 1}, oracle.Bound{Cost: 7}
	of, seeded := gather(c, []Bounds{{a, oracle.Bound{Slots: 9}}, {a, oracle.Bound{Slots: 8, Short: 2}},
		{b, oracle.Bound{Slots: 7}}, {b, oracle.Bound{Slots: 10}}})
	if want := []oracle.Bound{{Cost: 5, Slots: 8, Short: 3}, {Cost: 7, Slots: 7}}; !slices.Equal(of, want) ||
		len(seeded) != 4 || seeded[3].Slots != 10 {
		t.Errorf("of the seeds the cases have %+v, want %+v", of, want)
	}
}
