package importer

import (
	"bytes"
	"compress/gzip"
	"errors"
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

func gzipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	z.Close()
	return b.String()
}

// damage changes the checksum at the end of gzipped text.
func damage(text string) string {
	b := []byte(text)
	b[len(b)-8] ^= 1
	return string(b)
}

const history = `{
    "SpotPriceHistory": [
        {
            "AvailabilityZone": "us-west-2a",
            "InstanceType": "m5.large",
            "ProductDescription": "Linux/UNIX",
            "SpotPrice": "0.040100",
            "Timestamp": "2026-01-02T05:00:00+00:00"
        },
        {
            "AvailabilityZone": "us-west-2a",
            "InstanceType": "m5.large",
            "ProductDescription": "Linux/UNIX",
            "SpotPrice": "0.039000",
            "Timestamp": "2026-01-01T05:00:00.000Z"
        },
        {
            "AvailabilityZone": "us-west-2a",
            "InstanceType": "m5.large",
            "ProductDescription": "Windows",
            "SpotPrice": "0.131000",
            "Timestamp": "2026-01-01T05:00:00Z"
        }
    ],
    "NextToken": "abc=="
}
`

// The AWS CLI answers with the newest first, and a script may put several
// answers behind each other.
func TestImportJSON(t *testing.T) {
	second := `{"SpotPriceHistory":[{"AvailabilityZone":"eu-west-1c","InstanceType":"p9.huge",` +
		`"ProductDescription":"Linux/UNIX","SpotPrice":"7","Timestamp":"2026-01-03T00:00:00Z"}]}` + "\n"
	for name, text := range map[string]string{"plain": history + second, "gzipped": gzipped(t, history+second)} {
		tr, report, err := Import([]string{put(t, "any.name", text)}, Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var names []string
		for _, s := range tr.Series {
			names = append(names, s.Name())
		}
		want := []string{
			"aws/eu-west-1/eu-west-1c/p9.huge", "aws/us-west-2/us-west-2a/m5.large",
			"aws/us-west-2/us-west-2a/m5.large/Windows",
		}
		if !reflect.DeepEqual(names, want) {
			t.Errorf("%s: markets %v", name, names)
		}
		linux := tr.Series[1]
		if !reflect.DeepEqual(linux.At, []policy.Time{at(1, 5), at(2, 5)}) ||
			!reflect.DeepEqual(linux.Spot, []policy.Money{39_000, 40_100}) {
			t.Errorf("%s: %+v", name, linux)
		}
		if report.Rows != 4 || report.Bad != 0 || report.Markets != 3 || report.Changes != 4 ||
			report.From != at(1, 5) || report.To != at(3, 0) ||
			!reflect.DeepEqual(report.WithoutOnDemand, want[:1]) {
			t.Errorf("%s: %+v", name, report)
		}
	}
}

func TestImportCSV(t *testing.T) {
	both := put(t, "a", "t,region,az,instance_type,spot,ondemand\r\n"+
		"1767232800,us-east-1,use1-az1,c5.2xlarge,0.2035,0.34\r\n"+
		"1767229200,us-east-1,use1-az1,c5.2xlarge,,0.34\r\n"+
		"1767225600,us-east-1,use1-az1,c5.2xlarge,0.2,0.34\r\n")
	one := put(t, "b", "t,az,instance_type,price\n1767225600,us-east-1b,c5.2xlarge,0.1\n"+
		"1767225660,us-east-1b,c5.2xlarge,0.1\n1767225720,us-east-1b,c5.2xlarge,0.3\n1767225720,us-east-1b,c5.2xlarge,0.2\n")
	cli := put(t, "c", `"Timestamp","AvailabilityZone","InstanceType","ProductDescription","SpotPrice"`+
		"\n2026-01-01T00:00:00Z,us-east-1c,c5.2xlarge,Windows,0.5\n")
	tr, report, err := Import([]string{both, one, cli}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []trace.Series{
		{
			Provider: "aws", Region: "us-east-1", Zone: "us-east-1b", Type: "c5.2xlarge", Product: trace.ProductLinux,
			At: []policy.Time{at(1, 0), at(1, 0) + 120_000}, Spot: []policy.Money{100_000, 200_000},
		},
		{
			Provider: "aws", Region: "us-east-1", Zone: "us-east-1c", Type: "c5.2xlarge", Product: "Windows",
			At: []policy.Time{at(1, 0)}, Spot: []policy.Money{500_000},
		},
		{
			Provider: "aws", Region: "us-east-1", Zone: "use1-az1", Type: "c5.2xlarge", Product: trace.ProductLinux,
			At: []policy.Time{at(1, 0), at(1, 1), at(1, 2)}, Spot: []policy.Money{200_000, policy.NoPrice, 203_500},
			OnDemand: []policy.Money{340_000, 340_000, 340_000},
		},
	}
	if !reflect.DeepEqual(tr.Series, want) {
		t.Errorf("read\n%+v\nwant\n%+v", tr.Series, want)
	}
	if report.Duplicates != 1 || report.Repeats != 1 || report.Changes != 6 || report.Rows != 8 {
		t.Errorf("%+v", report)
	}
	if len(tr.Warnings) != 1 || !strings.Contains(tr.Warnings[0], "by ID and by name") {
		t.Errorf("warnings %q", tr.Warnings)
	}
}

func TestBadRows(t *testing.T) {
	text := "t,az,instance_type,price\n" +
		"1767225600,us-east-1b,c5.2xlarge,0.1\n" +
		"1767225600,us-east-1b,c5.2xlarge\n" +
		"yesterday,us-east-1b,c5.2xlarge,0.1\n" +
		"1767225600,mars,c5.2xlarge,0.1\n" +
		"1767225600,us-east-1b,c5.2xlarge,-0.1\n" +
		"\n" +
		"1767225600,us-east-1b,c5.2xlarge,cheap\n" +
		"1767225600,us-east-1b,,0.1\n" +
		"1767225600,us-east-1b,c5.2xlarge,\n" +
		"-4,us-east-1b,c5.2xlarge,0.1\n"
	path := put(t, "x.csv", text)
	tr, report, err := Import([]string{path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Series) != 1 || report.Rows != 9 || report.Bad != 8 || len(report.BadRows) != badRowsShown {
		t.Errorf("%+v", report)
	}
	for i, want := range []string{
		":3: 3 fields instead of 4", `:4: time "yesterday"`, `:5: zone "mars"`, `:6: price "-0.1" is impossible`, `:8: price "cheap"`,
	} {
		if !strings.HasPrefix(report.BadRows[i], path+want) {
			t.Errorf("%q does not begin %q", report.BadRows[i], path+want)
		}
	}
	_, _, err = Import([]string{path}, Options{Strict: true})
	if !errors.Is(err, trace.ErrBadRows) || !strings.Contains(err.Error(), path+":3: 3 fields") {
		t.Errorf("strict: %v", err)
	}
	_, report, err = Import([]string{path}, Options{Region: "phobos"})
	if err != nil || report.Bad != 7 {
		t.Errorf("with a region: %v, %+v", err, report)
	}
}

func TestBadJSONRows(t *testing.T) {
	text := strings.Replace(history, `"0.039000"`, `true`, 1)
	text = strings.Replace(text, `"2026-01-01T05:00:00Z"`, `"soon"`, 1)
	path := put(t, "x.json", text)
	_, report, err := Import([]string{path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{path + ":16: price \"true\" is not a number", path + `:23: time "soon" is neither Unix seconds nor RFC 3339`}
	if report.Rows != 3 || report.Bad != 2 || !reflect.DeepEqual(report.BadRows, want) {
		t.Errorf("%+v", report)
	}
	if _, _, err := Import([]string{path}, Options{Strict: true}); !errors.Is(err, trace.ErrBadRows) {
		t.Errorf("strict: %v", err)
	}
}

func TestImportRefuses(t *testing.T) {
	csv := "t,az,instance_type,price\n1767225600,us-east-1b,c5.2xlarge,0.1\n"
	stored, _, err := Import([]string{put(t, "csv", csv)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	parquetFile := filepath.Join(t.TempDir(), "p.parquet")
	if err := trace.WriteFile(parquetFile, stored); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(parquetFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text string
		want error
		says string
	}{
		"empty":          {"", trace.ErrEmpty, "nothing"},
		"blank":          {" \n\n", trace.ErrEmpty, "nothing"},
		"header only":    {"t,az,instance_type,price\n", trace.ErrEmpty, "no rows"},
		"all bad":        {"t,az,instance_type,price\nx\n", trace.ErrEmpty, "1 fields"},
		"column twice":   {"t,az,az,instance_type,price\n", trace.ErrFormat, `columns "az" and "az" may both be the zone`},
		"column missing": {"t,az,price\n", trace.ErrFormat, "missing are the instance type"},
		"prose":          {"Dear all,\n", trace.ErrFormat, "Dear all"},
		"lines drawn":    {"+---+\n|   |\n", trace.ErrFormat, "it starts"},
		"comments":       {"# exported\n\n# nothing\n", trace.ErrFormat, "comments only"},
		"Parquet":        {string(data), trace.ErrStored, "a trace already"},
		"other JSON":     {`{"cpu":[1,0]}`, trace.ErrFormat, "describe-spot-price-history"},
		"JSON list":      {`[1,2]`, trace.ErrFormat, "describe-spot-price-history"},
		"no entries":     {`{"SpotPriceHistory":[]}`, trace.ErrEmpty, "no rows"},
		"cut JSON":       {history[:400], trace.ErrCorrupt, "after line 13"},
		"broken JSON":    {strings.Replace(history, `"m5.large",`, `"m5.large"`, 1), trace.ErrCorrupt, "near line 6"},
		"cut gzip":       {gzipped(t, csv)[:40], trace.ErrCorrupt, "unexpected EOF"},
		"damaged gzip":   {damage(gzipped(t, csv)), trace.ErrCorrupt, "checksum"},
		"one long line":  {csv + strings.Repeat("x", 2<<20), trace.ErrFormat, "1 MiB"},
		"trailing value": {history + "7", trace.ErrFormat, "describe-spot-price-history"},
	} {
		path := put(t, "in", c.text)
		_, _, err := Import([]string{path}, Options{})
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v; want %v and %q", name, err, c.want, c.says)
		}
	}
	if _, _, err := Import([]string{"/nowhere/x"}, Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, _, err := Import(nil, Options{}); !errors.Is(err, trace.ErrEmpty) {
		t.Errorf("nothing named: %v", err)
	}
}

// A quoted field may hold commas and quotes; a quote that is left open spoils only its own row. The
// byte order mark that spreadsheets put first is not data, in any format.
func TestImportQuoted(t *testing.T) {
	const header = "\ufefft,region,generation,serverclass,category,cpu,memory,market_price,bid_p20,bid_p50,bid_p80\r\n"
	src := put(t, "r.csv", header+
		`1767225600,us-east-iad-1,v1,gp.vs1.medium-iad,"General, ""Purpose""",2,"3,75GB","0.001",0.002 , "0.005" ,0.01`+"\r\n"+
		`1767225601,us-east-iad-1,v1,gp.vs1.medium-iad,"General,2,3.75GB,0.002,0.002,0.005,0.01`+"\r\n"+
		`1767225602,us-east-iad-1,v1,gp.vs1.medium-iad,"General"x,2,"",0.003,"",0.005,0.01`+"\r\n"+
		`1767225603,us-east-iad-1,v1,"a,""b""",,2,,0.003,,,`+"\r\n")
	_, report := checkImport(t, Options{}, `
rackspace/us-east-iad-1/us-east-iad-1/a,"b" 01T00:00:03 spot=0.003
rackspace/us-east-iad-1/us-east-iad-1/gp.vs1.medium-iad 01T00:00:00 spot=0.001 bids=0.002 0.005 0.01
rackspace/us-east-iad-1/us-east-iad-1/gp.vs1.medium-iad 01T00:00:01 spot=0.002 bids=0.002 0.005 0.01
rackspace/us-east-iad-1/us-east-iad-1/gp.vs1.medium-iad 01T00:00:02 spot=0.003 bids=0 0.005 0.01`, src)
	if report.Rows != 4 || report.Bad != 0 {
		t.Errorf("%+v", report)
	}
	o := Options{Zone: "us-east-1a", Type: "p3.2xlarge", From: 1_767_225_600_000}
	checkImport(t, o, `
aws/us-east-1/us-east-1a/p3.2xlarge 01T00:00:00 spot=0.918 up=1
aws/us-east-1/us-east-1a/p3.2xlarge 01T00:01:00 spot=0.918 up=0 gap=60`, put(t, "fleet.csv", "\ufeff0,add,a\r\n60000,remove,a\r\n"))
	checkImport(t, o, "aws/us-east-1/us-east-1a/m5.large 01T00:00:00 spot=0.1",
		put(t, "s.json", "\ufeff"+`{"series":{"m5.large:us-east-1a":[{"current_price":0.1}]}}`))
}

// A time may be written as databases and Python print it. Prices are decimal
// numbers, whatever else Go takes for one.
func TestImportNumbers(t *testing.T) {
	const header = "t,az,instance_type,price\n"
	for _, text := range []string{
		"1767225600", "1767225600.0", "2026-01-01T00:00:00Z", "2026-01-01T02:00:00+02:00", "2026-01-01 00:00:00",
		"2026-01-01", "2026-01-01T00:00", "2026-01-01T00:00:00", "2026-01-01 00:00:00.000", "2026-01-01 00:00:00 GMT",
		"Thu, 01 Jan 2026 00:00:00 GMT", "Thu Jan  1 00:00:00 UTC 2026", "20260101T000000Z", "1767225600000000.0", "2026-01-01 00:00:00+00:00", "2025-12-31 19:00:00-05:00",
	} {
		checkImport(t, Options{}, "aws/us-east-1/us-east-1b/c5.large 01T00:00:00 spot=0.1",
			put(t, "a", header+`"`+text+`",us-east-1b,c5.large,0.1`+"\n"))
	}
	for _, text := range []string{"0x1p-2", "1_000", "1e308", "1e400", "NaN", "Inf", "-0.1", "0.1.2", "1000001"} {
		src := put(t, "a", header+"1767225600,us-east-1b,c5.large,"+text+"\n")
		if _, _, err := Import([]string{src}, Options{}); !errors.Is(err, trace.ErrEmpty) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"2026-13-01 00:00:00", "-5", "0", "99999999999999", "NaN", "yesterday", ""} {
		src := put(t, "a", header+text+",us-east-1b,c5.large,0.1\n")
		if _, _, err := Import([]string{src}, Options{}); !errors.Is(err, trace.ErrEmpty) || !strings.Contains(err.Error(), "time") {
			t.Errorf("time %q: %v", text, err)
		}
	}
}

func TestRegionOf(t *testing.T) {
	for zone, want := range map[string]string{
		"use1-az4": "us-east-1", "usw2-az1": "us-west-2", "apse2-az3": "ap-southeast-2", "aps1-az1": "ap-south-1",
		"us-east-1a": "us-east-1", "ap-southeast-2c": "ap-southeast-2", "us-gov-west-1b": "us-gov-west-1",
		"us-west-2-lax-1a": "us-west-2", "usw2-lax1-az1": "us-west-2", "xyz9-lax1-az1": "", "sa-east-1a": "sa-east-1",
		"us-east-1": "", "xyz9-az1": "", "mars": "", "": "", "us-central1-a": "", "use1-az": "",
	} {
		if got, _ := regionOf(zone); got != want {
			t.Errorf("%q: %q, want %q", zone, got, want)
		}
	}
}

// The figures are those that were counted from the file by other means.
func TestImportRecording(t *testing.T) {
	path := policytest.Recording(t, "prices/aws_skypilot_us-east-2_2023-11_2024-02.csv.gz")
	tr, report, err := Import([]string{path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if report.Rows != 162_479 || report.Bad != 0 || report.Markets != 473 || report.Duplicates != 0 {
		t.Errorf("%+v", report)
	}
	changes := 0
	for _, m := range tr.Series {
		for i := 1; i < len(m.Spot); i++ {
			if m.Spot[i] != m.Spot[i-1] && m.Spot[i] > 0 && m.Spot[i-1] > 0 {
				changes++
			}
		}
	}
	if changes != 161_997 {
		t.Errorf("%d changes of price", changes)
	}
}

// Reading a month of a stored recording gives what the import has there.
func TestStoredRecording(t *testing.T) {
	path := policytest.Recording(t, "prices/aws_api_sa-east-1_2019-12-31_2020-03-30.csv.gz")
	tr, report, err := Import([]string{path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if report.Rows != 54_046 || report.Markets != 407 || report.Repeats+report.Duplicates+report.Changes != 54_046 {
		t.Errorf("%+v", report)
	}
	dir := filepath.Join(t.TempDir(), "t")
	if err := trace.Write(dir, tr); err != nil {
		t.Fatal(err)
	}
	whole, err := trace.Open(dir, trace.ReadOptions{})
	if err != nil || whole.Digest != tr.Digest {
		t.Fatalf("stored and read: %v", err)
	}
	from := policy.TimeOf(time.Date(2020, 2, 1, 0, 0, 0, 0, time.UTC))
	part, err := trace.Open(dir, trace.ReadOptions{From: from, To: from + 7*24*3_600_000, Types: []string{"m5.large"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(part.Series) != 3 || part.WholeFrom != tr.From || part.WholeTo != tr.To || part.From != from-24*3_600_000 ||
		part.To != from+7*24*3_600_000 {
		t.Errorf("%d markets, %v to %v of %v to %v", len(part.Series), part.From, part.To, part.WholeFrom, part.WholeTo)
	}
}
