package qnet

import (
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// TestManifests draws many scenarios: each can be read and has pods for each of its pools,
// and the test counts the properties that scenarios must and must not share.
func TestManifests(t *testing.T) {
	count := map[string]int{}
	const scenarioCount = 300
	for i := range uint64(scenarioCount) {
		text := Manifests(chance.Stream(7, "world").At1(i))
		sc, err := scenarios.Parse("world.yaml", []byte(text))
		if err != nil {
			t.Fatalf("world %d: %v\n%s", i, err, text)
		}
		if err := sc.Validate(); err != nil {
			t.Fatalf("world %d: %v", i, err)
		}
		for _, word := range []string{"squeeze", "price-ramp", "late-notice", "zone-outage", "CronJob",
			"PodDisruptionBudget", "pool1", "intensity: 30", "intensity: 1}"} {
			if strings.Contains(text, word) {
				count[word]++
			}
		}
		if again := Manifests(chance.Stream(7, "world").At1(i)); again != text {
			t.Fatalf("world %d is another one when it is drawn again", i)
		}
	}
	for word, n := range count {
		if n == 0 || n == scenarioCount {
			t.Errorf("%d of %d worlds have %s", n, scenarioCount, word)
		}
	}
	if len(count) != 9 {
		t.Errorf("of what worlds may have only %v came", count)
	}
}

// TestLaws holds the prices of training apart from those that policies are
// compared on: the recordings of 2022 to 2024.
func TestLaws(t *testing.T) {
	s, err := newSource(1, len(laws))
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range s.traces {
		if y := tr.To.Std().Year(); y > 2021 || !tr.Synthetic {
			t.Errorf("%s lies in %d, synthetic is %v", tr.About, y, tr.Synthetic)
		}
	}
}
