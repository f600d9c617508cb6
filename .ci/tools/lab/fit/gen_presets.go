//go:build ignore

// This program fits the presets again to the recordings in the folder prices below
// $SPOTTER_DATA. It keeps only quantiles over markets and the parameters of the law, to
// four digits. Arguments name the presets to fit; without arguments it fits all.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/.ci/tools/lab/fit"
	"github.com/spotter-dev/spotter/scenarios/trace/generate"
	"github.com/spotter-dev/spotter/scenarios/trace/importer"
)

// presets are what is fitted, and to which recording.
var presets = []struct {
	file   string
	preset generate.Preset
}{
	{"aws_skypilot_us-east-2_2023-11_2024-02.csv.gz", generate.Preset{
		Law: generate.Law{Name: "aws-2024",
			Imitates: "AWS since November 2023, when prices began to move more often and fell"},
		Source: "us-east-2, November 2023 to February 2024, fetched four times a day by SkyPilot",
		Region: "us-east-1", Markets: 300, Days: 90, From: "2024-01-01",
	}},
	{"aws_skypilot_us-east-1_2022-12_2023-10.csv.gz", generate.Preset{
		Law: generate.Law{Name: "aws-2023",
			Imitates: "AWS from December 2022 to October 2023, when many prices stood near the on-demand price"},
		Source: "us-east-1, December 2022 to October 2023, fetched four times a day by SkyPilot",
		Region: "us-east-1", Markets: 300, Days: 90, From: "2023-01-01",
	}},
	{"aws_api_us-east-1_2021-03-02_2021-04-30.csv.gz", generate.Preset{
		Law:    generate.Law{Name: "aws-2021", Imitates: "AWS in spring 2021, when a third of the markets never moved"},
		Source: "us-east-1, March and April 2021, every event of DescribeSpotPriceHistory",
		Region: "us-east-1", Markets: 300, Days: 60, From: "2021-03-01",
	}},
	{"aws_api_sa-east-1_2019-12-31_2020-03-30.csv.gz", generate.Preset{
		Law: generate.Law{Name: "aws-quiet-2020",
			Imitates: "a quiet region of AWS in winter 2020, where half of the markets never moved and the others in long ramps, all zones at once"},
		Source: "sa-east-1, January to March 2020, every event of DescribeSpotPriceHistory",
		Region: "sa-east-1", Markets: 400, Days: 90, From: "2020-01-01",
	}},
	{"aws_bidding_era_us-east-1_2016-02-24_2016-03-25.csv.gz", generate.Preset{
		Law:    generate.Law{Name: "aws-auction-2016", Imitates: "the auction that AWS held until 2017"},
		Source: "us-east-1, 24 February to 25 March 2016, every event of DescribeSpotPriceHistory",
		Limits: "of 50 markets of a dozen types the median change rate differs by up to a third between seeds, and the 5th percentile of ratios lies up to a fifth too low; the 95th stands where the two markets begin that cost more than on-demand, from 0.35 at 90 % of the time to 7.7 at 97.5 %, so that one market more or less moves it severalfold",
		Region: "us-east-1", Markets: 50, Days: 30, From: "2016-02-24",
	}},
	{"gcp_skypilot_us-central1_us-east1_2022-11_2024-06.csv.gz", generate.Preset{
		Law:    generate.Law{Name: "gcp-2024", Imitates: "Google, which changes its list of prices on few dates"},
		Source: "us-central1 and us-east1, November 2022 to June 2024, collected by SkyPilot",
		Limits: "the recording saw about six changes of a price in 19 months, so that one date more or less moves the change rate by a sixth, and with them all zones move as one; the 5th percentile of ratios lies in a gap between two clusters, 0.09 and 0.21, and comes out at 0.11 to 0.13 for 0.15",
		Region: "us-central1", Markets: 300, Days: 365, From: "2023-06-01",
	}},
	{"azure_coroot_eastus_westeurope_2023-02_2024-08.csv.gz", generate.Preset{
		Law:    generate.Law{Name: "azure-2024", Imitates: "Azure, which changes its list of prices on few dates"},
		Source: "eastus and westeurope, February 2023 to August 2024, collected by Coroot",
		Limits: "the recording saw about three changes of a price in 18 months, so that one date more or less moves the change rate by a third; steps go back more often than recorded, with an autocorrelation of -0.1 for 0.01, and the 5th percentile of ratios is 0.046 for 0.055",
		Region: "eastus", Markets: 300, Days: 365, From: "2023-06-01",
	}},
	{"rackspace_weekly_2026-05-26_2026-07-13.csv", generate.Preset{
		Law: generate.Law{Name: "rackspace-2026",
			Imitates: "Rackspace Spot, a quiet auction: prices rest for weeks and are lifted for days"},
		Source: "the Rackspace feed of 2026-05-26 to 2026-07-13, looked at weekly",
		Limits: "the recording has 51 changes, in 25 markets, so that chance alone moves the change rate by a fifth; within 90 days more markets move than did in its seven weeks",
		Region: "us-east-iad-1", Markets: 60, Days: 90, From: "2026-05-26",
	}},
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen_presets:", err)
		os.Exit(1)
	}
}

func run() error {
	data := os.Getenv("SPOTTER_DATA")
	if data == "" {
		return errors.New("SPOTTER_DATA is not set: the folder that has the recordings")
	}
	only := os.Args[1:]
	for _, p := range presets {
		if len(only) > 0 && !slices.Contains(only, p.preset.Law.Name) {
			continue
		}
		t, _, err := importer.Import([]string{filepath.Join(data, "prices", p.file)}, importer.Options{})
		if err != nil {
			return err
		}
		for i := range t.Series {
			if kind := t.Series[i].Type; strings.Contains(kind, ".") && !slices.Contains(p.preset.Families,
				generate.Family(kind)) {
				p.preset.Families = append(p.preset.Families, generate.Family(kind))
			}
		}
		slices.Sort(p.preset.Families)
		p.preset.Law.Provider = t.Series[0].Provider
		markets, err := p.preset.Take(len(t.Series))
		if err != nil {
			return err
		}
		fitted, err := fit.Of(t, markets)
		if err != nil {
			return err
		}
		law := fitted.Law
		law.Name, law.Imitates = p.preset.Law.Name, p.preset.Law.Imitates
		p.preset.Law = law
		if err := write(&p.preset); err != nil {
			return err
		}
	}
	return nil
}

func write(p *generate.Preset) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return err
	}
	// The order of fields is that of the types, so they are decoded once more.
	if text, err = json.Marshal(rounded(tree)); err != nil {
		return err
	}
	var short generate.Preset
	if err := json.Unmarshal(text, &short); err != nil {
		return err
	}
	if text, err = json.MarshalIndent(&short, "", " "); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join("..", "..", "..", "..", "scenarios", "trace", "generate", "presets",
		p.Law.Name+".json"), append(text, '\n'), 0o644)
}

// rounded returns a tree of JSON whose numbers have four digits.
func rounded(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = rounded(v[k])
		}
	case []any:
		for i := range v {
			v[i] = rounded(v[i])
		}
	case float64:
		if v == math.Trunc(v) {
			return v
		}
		short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
		if err != nil {
			panic(err)
		}
		return short
	}
	return v
}
