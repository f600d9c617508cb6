package importer

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

const depthText = `t,zone,requested,launched
1767312000,us-central1-a,16,16
1767312600,us-central1-a,16,16
1767313200,us-central1-a,16,5
1767313800,us-central1-a,8,0
1767312000,us-east5-a,16,0
1767315600,us-east5-a,16,3
`

// A recording of depth keeps how many of how many came up, whether any did, and
// how long before each change the market was last looked at.
func TestImportDepth(t *testing.T) {
	want := `
gcp/us-central1/us-central1-a/a3-highgpu-1g 02T00:00:00 spot=3.293717 up=1 nodes=16/16
gcp/us-central1/us-central1-a/a3-highgpu-1g 02T00:20:00 spot=3.293717 up=1 nodes=5/16 gap=600
gcp/us-central1/us-central1-a/a3-highgpu-1g 02T00:30:00 spot=3.293717 up=0 nodes=0/8 gap=600
gcp/us-east5/us-east5-a/a3-highgpu-1g 02T00:00:00 spot=3.709712 up=0 nodes=0/16
gcp/us-east5/us-east5-a/a3-highgpu-1g 02T01:00:00 spot=3.709712 up=1 nodes=3/16 gap=3600`
	o := Options{Type: "a3-highgpu-1g", PriceRatio: 0.3}
	_, report := checkImport(t, o, want, put(t, "depth.csv", depthText))
	if report.Rows != 6 || report.Repeats != 1 || len(report.Modelled) != 2 || len(report.WithoutOnDemand)+len(report.UnknownTypes) != 0 {
		t.Errorf("%+v", report)
	}
	typed := "zone,launched,t,instance_type,requested\nus-central1-a,2,1767312000,a2-highgpu-1g,4\n"
	checkImport(t, Options{Prices: nil, PriceRatio: 0.5},
		"gcp/us-central1/us-central1-a/a2-highgpu-1g 02T00:00:00 spot=1.836693 up=1 nodes=2/4", put(t, "typed.csv", typed))
}

// A row that cannot be is named by file, line, field and value.
func TestImportDepthRefuses(t *testing.T) {
	for row, says := range map[string]string{
		"1767312000,us-central1-a,16,17":   `launched "17" is not a number of nodes from 0 to the 16 requested`,
		"1767312000,us-central1-a,16,-1":   `launched "-1"`,
		"1767312000,us-central1-a,16,":     `launched ""`,
		"1767312000,us-central1-a,16,1.5":  `launched "1.5"`,
		"1767312000,us-central1-a,0,0":     `requested "0" is not a number of nodes from 1 to 10000`,
		"1767312000,us-central1-a,10001,0": `requested "10001"`,
		"1767312000,,16,1":                 "no zone",
		"yesterday,us-central1-a,16,1":     `time "yesterday"`,
		"1767312000,us-central1-a,16":      "3 fields instead of 4",
	} {
		path := put(t, "depth.csv", depthText+row+"\n")
		o := Options{Type: "a3-highgpu-1g"}
		_, report, err := Import([]string{path}, o)
		if err != nil || report.Bad != 1 || !strings.Contains(report.BadRows[0], path+":8: ") || !strings.Contains(report.BadRows[0], says) {
			t.Errorf("%s: %+v, %v", row, report, err)
		}
		o.Strict = true
		if _, _, err = Import([]string{path}, o); !errors.Is(err, trace.ErrBadRows) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", row, err)
		}
	}
	path := put(t, "depth.csv", depthText)
	if _, _, err := Import([]string{path}, Options{}); !errors.Is(err, trace.ErrUnnamed) || !strings.Contains(err.Error(), path) {
		t.Errorf("no type: %v", err)
	}
}

// Another source that says only whether a node could be had leaves the depth
// unknown from there on.
func TestAvailabilityEndsDepth(t *testing.T) {
	depth := put(t, "depth.csv", "t,zone,requested,launched,instance_type\n1767312000,us-east1-c,16,5,a2-highgpu-1g\n")
	yes := put(t, "gcp-01-02-2026/us-east1-c_x_1.json", `{"metadata":{"gap_seconds":3600},"data":[null,1]}`)
	checkImport(t, Options{Type: "a2-highgpu-1g", PriceRatio: 1}, `
gcp/us-east1/us-east1-c/a2-highgpu-1g 02T00:00:00 spot=3.673385 up=1 nodes=5/16
gcp/us-east1/us-east1-c/a2-highgpu-1g 02T01:00:00 spot=3.673385 up=1 gap=3600`, depth, yes)
}

// depthRecording is the recording of depth: how many of 16 Spot a3-highgpu-1g
// came up in 13 zones of Google Cloud, every ten minutes for ten days.
const depthRecording = "availability/gcp_h100_depth_2025-10-04_2025-10-13.csv.gz"

// Every row of the recording is found again after it was written and read.
func TestRecordedDepth(t *testing.T) {
	path := policytest.Recording(t, depthRecording)
	tr, report, err := Import([]string{path}, Options{Type: "a3-highgpu-1g"})
	if err != nil {
		t.Fatal(err)
	}
	if report.Rows != 18_577 || report.Bad != 0 || report.Markets != 13 || len(report.WithoutOnDemand) != 0 {
		t.Errorf("%+v", report)
	}
	dir := filepath.Join(t.TempDir(), "t")
	if err := trace.Write(dir, tr); err != nil {
		t.Fatal(err)
	}
	if tr, err = trace.Open(dir, trace.ReadOptions{}); err != nil {
		t.Fatal(err)
	}
	series := map[string]*trace.Series{}
	for i := range tr.Series {
		series[tr.Series[i].Zone] = &tr.Series[i]
	}
	raw, err := io.ReadAll(openRaw(t, path))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(strings.TrimSpace(string(raw)), "\n") {
		f := strings.Split(strings.TrimSpace(line), ",")
		if f[0] == "t" {
			continue
		}
		seconds, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		s := series[f[1]]
		i, exact := slices.BinarySearch(s.At, policy.Time(seconds*1000))
		if !exact {
			i--
		}
		if got := fmt.Sprintf("%d,%d", s.Requested[i], s.Launched[i]); got != f[2]+","+f[3] {
			t.Fatalf("%s: read %s", line, got)
		}
	}
}
