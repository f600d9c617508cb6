package importer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// at returns an instant of January 2026.
func at(d int, hour float64) policy.Time {
	return policy.TimeOf(time.Date(2026, 1, d, 0, 0, 0, 0, time.UTC)) + policy.Time(hour*3_600_000)
}

// put writes text to a file below a new folder and returns where.
func put(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// describe returns what a trace says, a line for each interval.
func describe(tr *trace.Trace) string {
	var lines []string
	for i := range tr.Series {
		s := &tr.Series[i]
		for k, at := range s.At {
			v := s.Sample(k)
			line := s.Name() + " " + at.Std().Format("02T15:04:05")
			add := func(name string, value any) { line += fmt.Sprintf(" %s=%v", name, value) }
			if v.Spot == policy.NoPrice {
				line += " gone"
			} else {
				add("spot", v.Spot.Float())
			}
			if v.OnDemand > 0 {
				add("od", v.OnDemand.Float())
			}
			if v.Available >= 0 {
				add("up", v.Available)
			}
			if v.Launched >= 0 {
				add("nodes", fmt.Sprintf("%d/%d", v.Launched, v.Requested))
			}
			if gap := s.ProbeGapAt(k); gap > 0 {
				add("gap", gap)
			}
			if v.Band >= 0 {
				add("band", v.Band)
			}
			if v.Score >= 0 {
				add("score", v.Score)
			}
			if v.Bids != [3]policy.Money{} {
				add("bids", fmt.Sprint(v.Bids[0].Float(), v.Bids[1].Float(), v.Bids[2].Float()))
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// checkImport imports sources and compares what they say.
func checkImport(t *testing.T, o Options, want string, srcs ...string) (*trace.Trace, *Report) {
	t.Helper()
	tr, report, err := Import(srcs, o)
	if err != nil {
		t.Fatal(err)
	}
	if got := describe(tr); got != strings.TrimSpace(want) {
		t.Errorf("read\n%s\nwant\n%s", got, strings.TrimSpace(want))
	}
	return tr, report
}

// SpotLake writes the frequency of interruptions as a mark that is higher the
// better, and -1 or nothing for what it does not know.
func TestImportSpotLake(t *testing.T) {
	src := put(t, "a", "Time,InstanceType,Region,AZ,SPS,T3,T2,IF,OndemandPrice,SpotPrice,Savings\n"+
		"2026-01-01 00:00:00,m7i.large,us-east-1,use1-az1,9,50,50,3.0,0.1008,0.04,60\n"+
		"2026-01-01 00:10:00,m7i.large,us-east-1,use1-az1,9,50,50,3.0,0.1008,0.04,60\n"+
		"2026-01-01 00:20:00,m7i.large,us-east-1,use1-az1,3,0,10,2.5,0.1008,0.0399,60\n"+
		"2026-01-01 00:30:00,m7i.large,us-east-1,use1-az1,-1,-1,-1,-1,-1,-1.0,-1\n"+
		"2026-01-01 00:40:00,m7i.large,us-east-1,use1-az1,,,,,,0.04,\n"+
		"2026-01-01 00:00:00,c5.large,us-east-1,use1-az2,1,0,0,1.5,0.085,0.03,64\n"+
		"2026-01-01 00:10:00,c5.large,us-east-1,use1-az2,1,0,0,1.0,0.085,0.03,64\n"+
		"2026-01-01 00:20:00,c5.large,us-east-1,use1-az2,1,0,0,2.0,0.085,0.03,64\n"+
		"2026-01-01 00:30:00,c5.large,us-east-1,use1-az2,11,0,0,2.0,0.085,0.03,64\n"+
		"2026-01-01 00:30:00,c5.large,us-east-1,use1-az2,1.5,0,0,2.0,0.085,0.03,64\n"+
		"2026-01-01 00:30:00,c5.large,us-east-1,use1-az2,1,0,0,2.2,0.085,0.03,64\n")
	_, report := checkImport(t, Options{}, `
aws/us-east-1/use1-az1/m7i.large 01T00:00:00 spot=0.04 od=0.1008 band=0 score=9
aws/us-east-1/use1-az1/m7i.large 01T00:20:00 spot=0.0399 od=0.1008 band=1 score=3
aws/us-east-1/use1-az1/m7i.large 01T00:30:00 gone
aws/us-east-1/use1-az1/m7i.large 01T00:40:00 spot=0.04
aws/us-east-1/use1-az2/c5.large 01T00:00:00 spot=0.03 od=0.085 band=3 score=1
aws/us-east-1/use1-az2/c5.large 01T00:10:00 spot=0.03 od=0.085 band=4 score=1
aws/us-east-1/use1-az2/c5.large 01T00:20:00 spot=0.03 od=0.085 band=2 score=1
`, src)
	want := []string{
		src + `:10: placement score "11" is not an integer up to 10`, src + `:11: placement score "1.5" is not an integer up to 10`,
		src + `:12: interruption frequency "2.2" is not 3, 2.5, 2, 1.5 or 1`,
	}
	if !reflect.DeepEqual(report.BadRows, want) || report.Repeats != 1 || report.Formats[0] != "CSV of SpotLake" {
		t.Errorf("%+v", report)
	}
	// The columns of older files are fewer, and their order is not fixed.
	checkImport(t, Options{}, "aws/us-east-1/use1-az1/m7i.large 01T00:00:00 spot=0.04 band=4",
		put(t, "b", "InstanceType,SpotPrice,AZ,Region,IF,Time\nm7i.large,0.04,use1-az1,us-east-1,1,2026-01-01 00:00:00\n"))
}

func TestImportOtherProviders(t *testing.T) {
	gcp := put(t, "g", "t,region,az,instance_type,accel,accel_count,spot,ondemand\n"+
		"1767225600,us-east1,us-east1-d,acc:V100:8,V100,8.0,7.04,23.472\n"+
		"1767225660,us-east1,us-east1-d,acc:V100:8.0,V100,8.0,GONE,\n"+
		"1767225720,us-east1,us-east1-d,n2-standard-2,,,,0.09\n")
	azure := put(t, "a", "t,cloud,region,instance_type,spot,ondemand\n"+
		"1767225600,azure,eastus,Standard_D2s_v5,0.02,0.1\n1767225600,AZURE,eastus,DCasv5 Type 1,0.5,0\n")
	rackspace := put(t, "r", "t,region,generation,serverclass,category,cpu,memory,market_price,bid_p20,bid_p50,bid_p80\n"+
		"1767225600,us-east-iad-1,v1,gp.vs1.medium-iad,General Purpose,2,3.75GB,0.001,0.002,0.005,0.01\n"+
		"1767312000,us-east-iad-1,v1,gp.vs1.medium-iad,General Purpose,2,3.75GB,0.001,0.002,0.005,0.01\n"+
		"1767398400,us-east-iad-1,v1,gp.vs1.medium-iad,General Purpose,2,3.75GB,0.001,,0.006,0.01\n"+
		"1767484800,us-east-iad-1,v1,gp.vs1.medium-iad,General Purpose,2,3.75GB,,0.002,0.005,0.01\n"+
		"1767484800,us-east-iad-1,v1,gp.vs1.medium-iad,General Purpose,2,3.75GB,0.01,x,0.005,0.01\n")
	tr, report := checkImport(t, Options{}, `
azure/eastus/eastus/DCasv5 Type 1 01T00:00:00 spot=0.5
azure/eastus/eastus/Standard_D2s_v5 01T00:00:00 spot=0.02 od=0.1
gcp/us-east1/us-east1-d/acc:V100:8 01T00:00:00 spot=7.04 od=23.472
gcp/us-east1/us-east1-d/acc:V100:8 01T00:01:00 gone
gcp/us-east1/us-east1-d/n2-standard-2 01T00:02:00 gone od=0.09
rackspace/us-east-iad-1/us-east-iad-1/gp.vs1.medium-iad 01T00:00:00 spot=0.001 bids=0.002 0.005 0.01
rackspace/us-east-iad-1/us-east-iad-1/gp.vs1.medium-iad 03T00:00:00 spot=0.001 bids=0 0.006 0.01
`, gcp, azure, rackspace)
	want := []string{rackspace + ":5: no price", rackspace + `:6: bid: price "x" is not a number`}
	if !reflect.DeepEqual(report.BadRows, want) || report.Repeats != 1 ||
		!reflect.DeepEqual(tr.Warnings, []string{"1 on-demand prices are written 0 and taken as unknown"}) ||
		!reflect.DeepEqual(report.UnknownTypes, []string{"azure/DCasv5 Type 1", "gcp/acc:V100:8"}) {
		t.Errorf("%+v", report)
	}
	compareStored(t, tr)
}

const sampledText = `{"metadata":{"gap_seconds":195},"data":[0,0,1,1,0],"prices":[0.9,0.9,0.9,0.918,0.918]}`

func TestImportSamples(t *testing.T) {
	dated := put(t, "aws-01-02-2026/us-east-1a_v100_1.json", sampledText)
	tr, report := checkImport(t, Options{}, `
aws/us-east-1/us-east-1a/p3.2xlarge 02T00:00:00 spot=0.9 up=0
aws/us-east-1/us-east-1a/p3.2xlarge 02T00:06:30 spot=0.9 up=1 gap=195
aws/us-east-1/us-east-1a/p3.2xlarge 02T00:09:45 spot=0.918 up=1 gap=195
aws/us-east-1/us-east-1a/p3.2xlarge 02T00:13:00 spot=0.918 up=0 gap=195
`, dated)
	if tr.To != at(2, 0)+13*60_000 || report.Rows != 5 || report.Repeats != 1 || len(report.Modelled) != 0 || tr.Meta != nil ||
		!strings.HasPrefix(tr.About, "recorded prices and availability") {
		t.Errorf("to %v: %+v; %q", tr.To, report, tr.About)
	}
	// Counts above one are numbers of nodes; an invalid sample widens the gap.
	src := put(t, "us-central1-c_c3-88.json", `{"metadata":{"gap_seconds":2.5},"data":[3,null,-1,0.5,0]}`)
	_, report = checkImport(t, Options{Provider: "gcp", From: at(3, 0), PriceRatio: 0.5}, `
gcp/us-central1/us-central1-c/c3-highcpu-88 03T00:00:00 spot=1.896048 up=1
gcp/us-central1/us-central1-c/c3-highcpu-88 03T00:00:10 spot=1.896048 up=0 gap=10
`, src)
	if report.Bad != 3 || report.BadRows[0] != src+":data[1]: it is not a number of nodes" || len(report.Warnings) != 2 {
		t.Errorf("%+v", report)
	}
	if _, _, err := Import([]string{src}, Options{Provider: "gcp", From: at(3, 0), Strict: true}); !errors.Is(err, trace.ErrBadRows) {
		t.Errorf("strict: %v", err)
	}
	// A type may be named by itself or by an option, a zone by an option.
	for name, o := range map[string]Options{
		"us-east-1a_m5.large.json": {From: at(3, 0)}, "us-east-1a_huge.json": {From: at(3, 0), Type: "m5.large"},
		"x.json": {From: at(3, 0), Type: "m5.large", Zone: "us-east-1a"},
	} {
		checkImport(t, o, "aws/us-east-1/us-east-1a/m5.large 03T00:00:00 spot=0.0288 up=1",
			put(t, name, `{"data":[1],"metadata":{"gap_seconds":1}}`))
	}
}

// Prices that were not recorded are marked as modelled, in the trace itself, wherever it goes.
func TestModelledPricesSaySo(t *testing.T) {
	src := put(t, "aws-01-02-2026/us-east-1a_v100_1.json", `{"metadata":{"gap_seconds":60},"data":[1,0]}`)
	tr, report := checkImport(t, Options{}, `
aws/us-east-1/us-east-1a/p3.2xlarge 02T00:00:00 spot=0.918 up=1
aws/us-east-1/us-east-1a/p3.2xlarge 02T00:01:00 spot=0.918 up=0 gap=60
`, src)
	const said = "Spot prices not recorded, modelled as 0.3 of on-demand prices: aws/us-east-1/us-east-1a/p3.2xlarge"
	if tr.Meta[trace.MetaModelled] != said || !strings.Contains(tr.About, said) || len(report.Modelled) != 1 || report.Warnings[0] != said {
		t.Errorf("%+v, %q", report, tr.About)
	}
	dir := filepath.Join(t.TempDir(), "t")
	if err := trace.Write(dir, tr); err != nil {
		t.Fatal(err)
	}
	if got, err := trace.Open(dir, trace.ReadOptions{}); err != nil || !reflect.DeepEqual(got.Warnings, []string{said}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// Prices and availability of one market are joined: from files given together,
// or from a trace.
func TestJoinPrices(t *testing.T) {
	samples := put(t, "us-east-1a_m5.large.json", `{"metadata":{"gap_seconds":60},"data":[1,1,0,1]}`)
	prices := put(t, "p", "t,az,instance_type,price\n1767139200,us-east-1a,m5.large,0.02\n1767225660,us-east-1a,m5.large,0.03\n"+
		"1767225720,us-east-1a,m5.large,0.04\n1767312000,us-east-1a,m5.large,0.05\n1767225600,us-east-1b,m5.large,0.9\n")
	o := Options{From: at(1, 0)}
	joined := `
aws/us-east-1/us-east-1a/m5.large 01T00:01:00 spot=0.03 up=1
aws/us-east-1/us-east-1a/m5.large 01T00:02:00 spot=0.04 up=0 gap=60
aws/us-east-1/us-east-1a/m5.large 01T00:03:00 spot=0.04 up=1 gap=60
`
	_, report := checkImport(t, o, "aws/us-east-1/us-east-1a/m5.large 31T00:00:00 spot=0.02\n"+
		"aws/us-east-1/us-east-1a/m5.large 01T00:00:00 spot=0.02 up=1"+joined+
		"aws/us-east-1/us-east-1a/m5.large 02T00:00:00 spot=0.05 up=1\naws/us-east-1/us-east-1b/m5.large 01T00:00:00 spot=0.9", samples, prices)
	if report.Joined != 1 || report.Duplicates != 0 {
		t.Errorf("%+v", report)
	}
	var err error
	if o.Prices, _, err = Import([]string{prices}, Options{}); err != nil {
		t.Fatal(err)
	}
	checkImport(t, o, "aws/us-east-1/us-east-1a/m5.large 01T00:00:00 spot=0.02 up=1"+joined, samples)
}

func TestImportFleet(t *testing.T) {
	src := put(t, "p3-trace.csv", "0,add,n1\n0,add,n2\n60000,remove,n1\n60000,remove,n2\n120000,add,n3\n180000,add,n4\n"+
		"240000,add,n4\n240000,remove,n9\n240000,grow,n5\nx,add,n6\n240000,add,n7\n1,2\n")
	_, report := checkImport(t, Options{From: at(1, 0), Zone: "us-west-2a"}, `
aws/us-west-2/us-west-2a/p3.2xlarge 01T00:00:00 spot=0.918 up=1
aws/us-west-2/us-west-2a/p3.2xlarge 01T00:01:00 spot=0.918 up=0 gap=60
aws/us-west-2/us-west-2a/p3.2xlarge 01T00:02:00 spot=0.918 up=1 gap=60
`, src)
	want := []string{
		src + `:7: node "n4" is added and was there`, src + `:8: node "n9" is removed and was not there`,
		src + `:9: event "grow" is neither add nor remove`, src + `:10: time "x" is not a number of milliseconds`,
	}
	if report.Rows != 12 || report.Bad != 5 || !reflect.DeepEqual(report.BadRows[:4], want) || report.Repeats != 4 {
		t.Errorf("%+v", report)
	}
	// Sold by region; instants that are not whole minutes are exact.
	checkImport(t, Options{From: at(1, 0), Region: "us-west-2", Type: "m5.large"}, `
aws/us-west-2/us-west-2/m5.large 01T00:00:00 spot=0.0288 up=1
aws/us-west-2/us-west-2/m5.large 01T00:00:01 spot=0.0288 up=0
`, put(t, "x", "0,add,a\n1000,remove,a\n"))
}

const feedText = `{"regions":{"us-east-iad-1":{"generation":"gen-1","serverclasses":{
 "gp.vs1.medium-iad":{"display_name":"GP","cpu":2,"memory":"3.75GB","market_price":"0.001000","20_percentile":0.002,"50_percentile":0.005,"80_percentile":"0.01"},
 "gp.vs1.large-iad":{"market_price":0.02},
 "gp.vs1.odd-iad":{"market_price":null,"20_percentile":0.002},
 "gp.vs1.none-iad":{"market_price":"cheap"}}}}}`

func TestImportPercentiles(t *testing.T) {
	first := put(t, "percentiles-2026-01-02T03-04-05Z.json", feedText)
	second := put(t, "2026-01-09.json", strings.Replace(feedText, "0.001000", "0.005000", 1))
	third := put(t, "feed-1768003200.json", feedText)
	_, report := checkImport(t, Options{}, `
rackspace/us-east-iad-1/us-east-iad-1/gp.vs1.large-iad 02T03:04:05 spot=0.02
rackspace/us-east-iad-1/us-east-iad-1/gp.vs1.medium-iad 02T03:04:05 spot=0.001 bids=0.002 0.005 0.01
rackspace/us-east-iad-1/us-east-iad-1/gp.vs1.medium-iad 09T00:00:00 spot=0.005 bids=0.002 0.005 0.01
rackspace/us-east-iad-1/us-east-iad-1/gp.vs1.medium-iad 10T00:00:00 spot=0.001 bids=0.002 0.005 0.01
`, third, first, second)
	if report.Rows != 12 || report.Bad != 6 || report.BadRows[0] != third+`:us-east-iad-1/gp.vs1.none-iad: price "cheap" is not a number` {
		t.Errorf("%+v", report)
	}
	undated := put(t, "percentiles.json", feedText)
	checkImport(t, Options{At: at(5, 1)}, `
rackspace/us-east-iad-1/us-east-iad-1/gp.vs1.large-iad 05T01:00:00 spot=0.02
rackspace/us-east-iad-1/us-east-iad-1/gp.vs1.medium-iad 05T01:00:00 spot=0.001 bids=0.002 0.005 0.01
`, undated)
	if _, _, err := Import([]string{undated, first}, Options{At: at(5, 1)}); !errors.Is(err, trace.ErrUnnamed) {
		t.Errorf("one instant for two snapshots: %v", err)
	}
}

func TestImportGoldenPercentiles(t *testing.T) {
	src := put(t, "2026-05-20.json", string(policytest.Golden(t, "rackspace_percentiles_sample.json")))
	tr, report, err := Import([]string{src}, Options{})
	if err != nil || len(tr.Series) != 4 || report.Bad != 0 || report.Rows != 4 ||
		!strings.Contains(describe(tr), "rackspace/us-east-iad-1/us-east-iad-1/ch.vs1.large-iad 20T00:00:00 spot=0.005 bids=0.006 0.011 0.011") {
		t.Errorf("%v, %+v", err, report)
	}
}

const scriptText = `{"default":{"current_price":0.2,"on_demand_price":1.0},"repeat_last":true,"series":{
 "m5.large:us-east-1a":[{"current_price":0.22},{"error":"throttled"},{"current_price":0.3,"on_demand_price":1.5}],
 "*:us-west-2a":[{"current_price":0.4},{"current_price":0.5}]}}`

// The script is asked every half minute. A market with steps of its own goes
// through them; two that share steps take turns, in the order of their names.
func TestImportScript(t *testing.T) {
	src := put(t, "s.json", scriptText)
	tr, report := checkImport(t, Options{From: at(1, 0)}, `
aws/us-east-1/us-east-1a/m5.large 01T00:00:00 spot=0.22 od=1
aws/us-east-1/us-east-1a/m5.large 01T00:01:00 spot=0.3 od=1.5
`, src)
	if report.Rows != 3 || tr.To != at(1, 0)+90_000 || !strings.HasPrefix(tr.About, "scripted prices") ||
		!reflect.DeepEqual(report.Warnings, []string{"s.json: 1 of 3 calls failed, where the last price is kept (the first: throttled)"}) {
		t.Errorf("to %v, %q: %+v", tr.To, tr.About, report)
	}
	o := Options{From: at(1, 0), Script: ScriptOptions{
		Tick: time.Minute, For: 150 * time.Second, Markets: []string{"a:us-west-2a", "b:us-west-2a", "c:eu-west-1a"},
	}}
	checkImport(t, o, `
aws/eu-west-1/eu-west-1a/c 01T00:00:00 spot=0.2 od=1
aws/us-east-1/us-east-1a/m5.large 01T00:00:00 spot=0.22 od=1
aws/us-east-1/us-east-1a/m5.large 01T00:02:00 spot=0.3 od=1.5
aws/us-west-2/us-west-2a/a 01T00:00:00 spot=0.4 od=1
aws/us-west-2/us-west-2a/a 01T00:01:00 spot=0.5 od=1
aws/us-west-2/us-west-2a/b 01T00:00:00 spot=0.5 od=1
`, src)
	// The script runs to its end, which two markets reach in half as many calls.
	shared := put(t, "s.json", `{"series":{"*:us-west-2a":[{"current_price":1},{"current_price":2},{"current_price":3},{"current_price":4}]}}`)
	tr, _ = checkImport(t, Options{From: at(1, 0), Script: ScriptOptions{Markets: []string{"a:us-west-2a", "b:us-west-2a"}}}, `
aws/us-west-2/us-west-2a/a 01T00:00:00 spot=1
aws/us-west-2/us-west-2a/a 01T00:00:30 spot=3
aws/us-west-2/us-west-2a/b 01T00:00:00 spot=2
aws/us-west-2/us-west-2a/b 01T00:00:30 spot=4
`, shared)
	if tr.To != at(1, 0)+60_000 {
		t.Errorf("to %v", tr.To)
	}
	// After the end of a script that does not repeat, the last price stays in force.
	o.Script.Markets = nil
	o.Script.For = 10 * time.Minute
	tr, report = checkImport(t, o, `
aws/us-east-1/us-east-1a/m5.large 01T00:00:00 spot=0.22 od=1
aws/us-east-1/us-east-1a/m5.large 01T00:02:00 spot=0.3 od=1.5
`, put(t, "s.json", strings.Replace(scriptText, "true", "false", 1)))
	if tr.To != at(1, 0)+600_000 || !strings.Contains(report.Warnings[0], "8 of 10 calls failed") {
		t.Errorf("to %v: %+v", tr.To, report)
	}
}

// What a recording leaves out must be said, and what it has wrong is named.
func TestImportRefusesForms(t *testing.T) {
	const day = "aws-01-02-2026/"
	from := Options{From: at(1, 0)}
	for name, c := range map[string]struct {
		file, text string
		o          Options
		want       error
		says       string
	}{
		"no date":         {"us-east-1a_v100_1.json", sampledText, Options{}, trace.ErrUnnamed, "gives its start"},
		"no market":       {day + "x.json", sampledText, Options{}, trace.ErrUnnamed, "us-east-1a_v100_1.json"},
		"unknown kind":    {day + "us-east-1a_h900_1.json", sampledText, Options{}, trace.ErrUnnamed, `"h900_1"`},
		"kind of another": {"gcp-01-02-2026/us-east1-b_v100_1.json", sampledText, Options{}, trace.ErrUnnamed, "gcp"},
		"zone of nowhere": {day + "mars_v100_1.json", sampledText, Options{}, trace.ErrNoRegion, `"mars"`},
		"no gap":          {day + "us-east-1a_v100_1.json", `{"metadata":{},"data":[1]}`, Options{}, trace.ErrValue, "gap_seconds is 0"},
		"no samples": {day + "us-east-1a_v100_1.json", `{"metadata":{"gap_seconds":1},"data":[]}`, Options{},
			trace.ErrEmpty, "no samples"},
		"too few prices": {day + "us-east-1a_v100_1.json", `{"metadata":{"gap_seconds":1},"data":[1,1],"prices":[1]}`,
			Options{}, trace.ErrValue, "prices has 1"},
		"words for samples": {day + "us-east-1a_v100_1.json", "{\"metadata\":{\"gap_seconds\":1},\n\"data\":[\"up\"]}",
			Options{}, trace.ErrFormat, "line 2: data is a string"},
		"samples cut short":  {day + "us-east-1a_v100_1.json", sampledText[:60], Options{}, trace.ErrCorrupt, "cut short"},
		"samples and more":   {day + "us-east-1a_v100_1.json", sampledText + "{}", Options{}, trace.ErrFormat, "more follows"},
		"fleet nowhere":      {"p3-trace.csv", "0,add,a\n", from, trace.ErrNoRegion, "name none"},
		"fleet never":        {"p3-trace.csv", "0,add,a\n", Options{Zone: "us-east-1a"}, trace.ErrUnnamed, "no start time"},
		"fleet of what":      {"x.csv", "0,add,a\n", Options{Zone: "us-east-1a", From: 1}, trace.ErrUnnamed, `"x"`},
		"feed without date":  {"percentiles.json", feedText, Options{}, trace.ErrUnnamed, "percentiles.json"},
		"feed on a bad date": {"2026-13-01.json", feedText, Options{}, trace.ErrUnnamed, "2026-13-01"},
		"script never":       {"s.json", scriptText, Options{}, trace.ErrUnnamed, "no start time"},
		"script of nothing":  {"s.json", `{"series":{"*:*":[{"current_price":1}]}}`, from, trace.ErrUnnamed, "no market in full"},
		"script mistyped":    {"s.json", `{"default":{"price":1}}`, from, trace.ErrFormat, "unknown field"},
		"script nowhere":     {"s.json", `{"series":{"a:mars":[{"current_price":1}]}}`, from, trace.ErrNoRegion, "mars"},
		"script without end": {"s.json", scriptText, Options{From: 1, Script: ScriptOptions{For: 1 << 60,
			Tick: time.Second}}, trace.ErrValue, "asked"},
		"script for many": {"s.json", scriptText, Options{From: 1, Script: ScriptOptions{Markets: []string{"*:z"}}}, trace.ErrUnnamed, "*:z"},
	} {
		path := put(t, c.file, c.text)
		_, _, err := Import([]string{path}, c.o)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v; want %v and %q", name, err, c.want, c.says)
		}
	}
}

// A time without a zone is taken as UTC, and that is said once.
func TestTimesWithoutZone(t *testing.T) {
	tr, _ := checkImport(t, Options{},
		"aws/us-east-1/use1-az1/m7i.large 01T00:00:00 spot=0.04\naws/us-east-1/use1-az1/m7i.large 01T01:00:00 spot=0.05",
		put(t, "z",
			"InstanceType,SpotPrice,AZ,Region,Time\nm7i.large,0.04,use1-az1,us-east-1,2026-01-01 00:00:00\nm7i.large,0.05,use1-az1,us-east-1,2026-01-01 01:00:00\n"))
	if want := []string{`times without a zone, as "2026-01-01 00:00:00", are taken as UTC`}; !reflect.DeepEqual(tr.Warnings, want) {
		t.Errorf("warnings %q, want %q", tr.Warnings, want)
	}
}
