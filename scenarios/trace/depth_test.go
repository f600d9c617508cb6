package trace

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
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
	o := ImportOptions{Type: "a3-highgpu-1g", PriceRatio: 0.3}
	_, report := checkImport(t, o, want, put(t, "depth.csv", depthText))
	if report.Rows != 6 || report.Repeats != 1 || len(report.Modelled) != 2 || len(report.WithoutOnDemand)+len(report.UnknownTypes) != 0 {
		t.Errorf("%+v", report)
	}
	typed := "zone,launched,t,instance_type,requested\nus-central1-a,2,1767312000,a2-highgpu-1g,4\n"
	checkImport(t, ImportOptions{Prices: nil, PriceRatio: 0.5},
		"gcp/us-central1/us-central1-a/a2-highgpu-1g 02T00:00:00 spot=1.836693 up=1 nodes=2/4", put(t, "typed.csv", typed))
}

// A row that cannot be is named by file, line, field and value.
func TestImportDepthRefuses(t *testing.T) {
	for row, says := range map[string]string{
		"1767312000,us-central1-a,16,17":   `launched "17" is no number of nodes from 0 to the 16 requested`,
		"1767312000,us-central1-a,16,-1":   `launched "-1"`,
		"1767312000,us-central1-a,16,":     `launched ""`,
		"1767312000,us-central1-a,16,1.5":  `launched "1.5"`,
		"1767312000,us-central1-a,0,0":     `requested "0" is no number of nodes from 1 to 10000`,
		"1767312000,us-central1-a,10001,0": `requested "10001"`,
		"1767312000,,16,1":                 "no zone",
		"yesterday,us-central1-a,16,1":     `time "yesterday"`,
		"1767312000,us-central1-a,16":      "3 fields instead of 4",
	} {
		path := put(t, "depth.csv", depthText+row+"\n")
		o := ImportOptions{Type: "a3-highgpu-1g"}
		_, report, err := Import([]string{path}, o)
		if err != nil || report.Bad != 1 || !strings.Contains(report.BadRows[0], path+":8: ") || !strings.Contains(report.BadRows[0], says) {
			t.Errorf("%s: %+v, %v", row, report, err)
		}
		o.Strict = true
		if _, _, err = Import([]string{path}, o); !errors.Is(err, ErrBadRows) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", row, err)
		}
	}
	path := put(t, "depth.csv", depthText)
	if _, _, err := Import([]string{path}, ImportOptions{}); !errors.Is(err, ErrUnnamed) || !strings.Contains(err.Error(), path) {
		t.Errorf("no type: %v", err)
	}
}

// A depthRow is a row of a file that another program wrote.
type depthRow struct {
	Time      int64   `parquet:"time,timestamp(millisecond)"`
	Zone      string  `parquet:"zone"`
	Type      string  `parquet:"instance_type"`
	Spot      float64 `parquet:"spot_price"`
	Available bool    `parquet:"available"`
	Requested int32   `parquet:"requested"`
	Launched  int32   `parquet:"launched"`
}

// What a file says of depth is checked where it is read, and the row is named.
func TestDepthThatCannotBe(t *testing.T) {
	good := depthRow{int64(at(1, 0)), "z", "t", 1, true, 16, 9}
	for name, c := range map[string]struct {
		row    depthRow
		column string
	}{
		"more than requested": {depthRow{int64(at(1, 1)), "z", "t", 1, true, 16, 17}, colLaunched},
		"none requested":      {depthRow{int64(at(1, 1)), "z", "t", 1, false, 0, 0}, colRequested},
		"not available":       {depthRow{int64(at(1, 1)), "z", "t", 1, false, 16, 1}, colAvailable},
		"available":           {depthRow{int64(at(1, 1)), "z", "t", 1, true, 16, 0}, colAvailable},
		"far too many":        {depthRow{int64(at(1, 1)), "z", "t", 1, true, 20_000, 1}, colRequested},
	} {
		path := writeRows(t, []depthRow{good, c.row})
		_, err := Open(path, ReadOptions{Provider: "p", Region: "r"})
		var fault *FileError
		if !errors.As(err, &fault) || !errors.Is(err, ErrValue) || fault.Column != c.column || fault.Row != 2 || fault.Value == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	bad := small(t)
	bad.Series[2].Launched[0] = 17
	if err := Write(filepath.Join(t.TempDir(), "t"), bad); !errors.Is(err, ErrValue) {
		t.Errorf("written: %v", err)
	}
}

// Another source that says only whether a node could be had leaves the depth
// unknown from there on.
func TestAvailabilityEndsDepth(t *testing.T) {
	depth := put(t, "depth.csv", "t,zone,requested,launched,instance_type\n1767312000,us-east1-c,16,5,a2-highgpu-1g\n")
	yes := put(t, "gcp-01-02-2026/us-east1-c_x_1.json", `{"metadata":{"gap_seconds":3600},"data":[null,1]}`)
	checkImport(t, ImportOptions{Type: "a2-highgpu-1g", PriceRatio: 1}, `
gcp/us-east1/us-east1-c/a2-highgpu-1g 02T00:00:00 spot=3.673385 up=1 nodes=5/16
gcp/us-east1/us-east1-c/a2-highgpu-1g 02T01:00:00 spot=3.673385 up=1 gap=3600`, depth, yes)
}

// depthRecording is the recording of depth: how many of 16 Spot a3-highgpu-1g
// came up in 13 zones of Google Cloud, every ten minutes for ten days.
const depthRecording = "availability/gcp_h100_depth_2025-10-04_2025-10-13.csv.gz"

// Every row of the recording is found again after it was written and read.
func TestRecordedDepth(t *testing.T) {
	path := policytest.Recording(t, depthRecording)
	tr, report, err := Import([]string{path}, ImportOptions{Type: "a3-highgpu-1g"})
	if err != nil {
		t.Fatal(err)
	}
	if report.Rows != 18_577 || report.Bad != 0 || report.Markets != 13 || len(report.WithoutOnDemand) != 0 {
		t.Errorf("%+v", report)
	}
	dir := filepath.Join(t.TempDir(), "t")
	if err := Write(dir, tr); err != nil {
		t.Fatal(err)
	}
	if tr, err = Open(dir, ReadOptions{}); err != nil {
		t.Fatal(err)
	}
	series := map[string]*Series{}
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
		v, ok := series[f[1]].when(policy.Time(seconds * 1000))
		if got := fmt.Sprintf("%d,%d", v.requested, v.launched); !ok || got != f[2]+","+f[3] {
			t.Fatalf("%s: read %s", line, got)
		}
	}
}
