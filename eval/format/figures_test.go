package format

import (
	"testing"
)

func TestLevelWords(t *testing.T) {
	for policies, want := range map[int]string{1: "95%", 2: "97.5%", 6: "99.2%", 7: "99.3%", 200: "99.98%"} {
		if got := levelWords(1 - 0.05/float64(policies)); got != want {
			t.Errorf("%d policies: %s, want %s", policies, got, want)
		}
	}
}

func TestSeedList(t *testing.T) {
	if got := seedList([]uint64{1, 2, 3, 7, 9, 10}); got != "1-3,7,9-10" {
		t.Errorf("got %s", got)
	}
}
