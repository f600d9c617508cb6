package eval

import (
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/eval/oracle"
)

// TestGather: a case has the least bound with slots of its seeds.
func TestGather(t *testing.T) {
	of := []oracle.Bound{{Cost: 5, Short: 1}, {Cost: 7}}
	gather(of, []oracle.Bound{{Slots: 9}, {Slots: 8, Short: 2}, {Slots: 7}, {Slots: 10}})
	if want := []oracle.Bound{{Cost: 5, Slots: 8, Short: 3}, {Cost: 7, Slots: 7}}; !slices.Equal(of, want) {
		t.Errorf("of the seeds the cases have %+v, want %+v", of, want)
	}
}
