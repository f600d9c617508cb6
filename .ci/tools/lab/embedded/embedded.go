// Package embedded makes the embedded traces: that of recorded prices out of the recording that it is
// a part of, which is not in the repository, and the synthetic ones.
package embedded

import (
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/importer"
)

// Source is the path of the recording below the folder of recordings.
const Source = "prices/aws_skypilot_us-east-2_2023-11_2024-02.csv.gz"

// Make returns the embedded trace, made from the recording at path: its markets of the instance
// types that the synthetic trace has, so that scenarios have the same choice on both, without those
// that were never offered.
func Make(path string) (*trace.Trace, error) {
	all, _, err := importer.Import([]string{path}, importer.Options{Strict: true})
	if err != nil {
		return nil, fmt.Errorf("importing %s: %w", path, err)
	}
	like, err := trace.Synthetic()
	if err != nil {
		return nil, err
	}
	types := map[string]bool{}
	for i := range like.Series {
		types[like.Series[i].Type] = true
	}
	chosen := slices.DeleteFunc(slices.Clone(all.Series), func(s trace.Series) bool {
		return !types[s.Type] ||
			!offered(&s)
	})
	t, err := trace.New(trace.Recorded, chosen)
	if err != nil {
		return nil, err
	}
	dates := fmt.Sprintf("%s to %s", t.From.Std().Format(time.DateOnly), t.To.Std().Format(time.DateOnly))
	t.About = "prices of AWS in us-east-2, recorded four times a day from " + dates
	t.Meta = map[string]string{
		trace.MetaSource:   "Amazon Web Services, prices of Spot and on-demand Linux instances in us-east-2",
		trace.MetaDates:    dates,
		trace.MetaSampling: "four times a day: a price may have changed up to seven hours before its time",
		trace.MetaFetcher:  "the catalog fetcher of SkyPilot (github.com/skypilot-org/skypilot-catalog)",
	}
	return t, nil
}

// offered reports whether s had a Spot price at any time.
func offered(s *trace.Series) bool {
	return slices.ContainsFunc(s.Spot, func(p policy.Money) bool { return p != policy.NoPrice })
}
