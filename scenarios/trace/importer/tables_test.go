package importer

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"

	"github.com/spotter-dev/spotter/scenarios/trace"
)

// twoPrices is what every spelling of the same two prices must be read as.
const twoPrices = `
aws/us-west-2/us-west-2b/r6i.large 01T06:00:00 spot=0.0412
aws/us-west-2/us-west-2c/c7g.xlarge 01T07:30:00 spot=0.053312`

// tables are two prices as programs and people write them.
var tables = map[string]string{
	"snake case":  "timestamp,availability_zone,instance_type,spot_price\n2026-01-01T06:00:00Z,us-west-2b,r6i.large,0.0412\n2026-01-01T07:30:00Z,us-west-2c,c7g.xlarge,0.053312\n",
	"blanks":      "Instance Type,Spot Price,Availability Zone,Timestamp\nr6i.large,0.0412,us-west-2b,2026-01-01 06:00:00+00:00\nc7g.xlarge,0.053312,us-west-2c,2026-01-01 07:30:00+00:00\n",
	"hyphens":     "INSTANCE-TYPE,AZ,TIME,PRICE\nr6i.large,us-west-2b,1767247200,0.0412\nc7g.xlarge,us-west-2c,1767252600,0.053312\n",
	"region zone": "datetime,instance_type,os,region,price\n2026-01-01 06:00:00+00:00,r6i.large,linux,us-west-2b,0.0412\n2026-01-01 07:30:00+00:00,c7g.xlarge,Linux/UNIX,us-west-2c,0.053312\n",
	"pandas":      ",TimeStamp,AvailabilityZone,InstanceType,SpotPrice\n0,2026-01-01 06:00:00Z,us-west-2b,r6i.large,0.0412\n1,2026-01-01 07:30:00Z,us-west-2c,c7g.xlarge,0.053312\n",
	"unnamed":     "Unnamed: 0\tdate\tzone\ttype\tprice\r\n0\t2026-01-01 06:00:00 UTC\tus-west-2b\tr6i.large\t0.0412\r\n1\t2026-01-01 07:30:00 UTC\tus-west-2c\tc7g.xlarge\t0.053312\r\n",
	"tabbed index": "\tTimestamp\tAvailabilityZone\tInstanceType\tSpotPrice\n0\t2026-01-01T06:00:00Z\tus-west-2b\tr6i.large\t0.0412\n" +
		"1\t2026-01-01T07:30:00Z\tus-west-2c\tc7g.xlarge\t0.053312\n",
	"semicolons": "\"Zeit\";\"Timestamp\";\"AZ\";\"Instance Type\";\"Price\"\n\"x;y\";\"2026-01-01T06:00Z\";\"us-west-2b\";\"r6i.large\";\"0,0412\"\n\"\";\"2026/01/01 07:30:00 UTC\";\"us-west-2c\";\"c7g.xlarge\";\"0,053312\"\n",
	"dollars": "price_usd,az,instance,ts,currency\n$0.0412,us-west-2b,r6i.large,1767247200000,US$\n" +
		"0.053312 USD,us-west-2c,c7g.xlarge,1767252600000,usd\n",
	"nanoseconds": "SpotPrice,zone_name,machine_type,epoch\n$0.0412/hr,us-west-2b,r6i.large,1767247200000000000\n0.053312 per hour,us-west-2c,c7g.xlarge,1767252600000000\n",
	"twice named": "timestamp,created at,price,spot_price,time,zone,zone_id,availability_zone,instance_type\n" +
		"2026-01-01T06:00:00Z,x,99,0.0412,y,q,usw2-az1,us-west-2b,r6i.large\n2026-01-01T07:30:00Z,x,99,0.053312,y,q,usw2-az2,us-west-2c,c7g.xlarge\n",
	"header again": "# exported\ntimestamp,az,instance_type,price\n2026-01-01T06:00:00Z,us-west-2b,r6i.large,0.0412\ntimestamp,az,instance_type,price\n" +
		"2026-01-01T07:30:00Z,us-west-2c,c7g.xlarge,0.053312\n",
	"date and clock":   "Date,Time,AZ,Instance Type,Price\n2026-01-01,06:00:00,us-west-2b,r6i.large,0.0412\n2026-01-01,08:30:00+01:00,us-west-2c,c7g.xlarge,0.053312\n",
	"date as well":     "date,time,az,instance_type,price\n2026-01-01,2026-01-01T06:00:00Z,us-west-2b,r6i.large,0.0412\n2026-01-01,2026-01-01T07:30:00Z,us-west-2c,c7g.xlarge,0.053312\n",
	"letters":          "Time,Instance_Type,Region,AZ,Spot_Price\n1767247200,r6i.large,us-west-2,b,0.0412\n1767252600,c7g.xlarge,us-west-2,c,0.053312\n",
	"long region":      "timestamp,region,az,instance_type,price\n2026-01-01T06:00:00Z,US West (Oregon),us-west-2b,r6i.large,0.0412\n2026-01-01T07:30:00Z,us-west-2,us-west-2c,c7g.xlarge,0.053312\n",
	"no header":        "c7g.xlarge,0.053312,us-west-2c,1767252600\nr6i.large,0.0412,us-west-2b,1767247200\n",
	"index, no header": "0;2026-01-01T06:00:00Z;us-west-2;us-west-2b;r6i.large;0.0412\n1;2026-01-01T07:30:00Z;us-west-2;us-west-2c;c7g.xlarge;0.053312\n",
	"text": "SPOTPRICEHISTORY\tus-west-2b\tr6i.large\tLinux/UNIX\t0.041200\t2026-01-01T06:00:00+00:00\n" +
		"SPOTPRICEHISTORY\tus-west-2c\tc7g.xlarge\tLinux/UNIX\t0.053312\t2026-01-01T07:30:00+00:00\nNEXTTOKEN\tabc==\n",
	"text with IDs": "SPOTPRICEHISTORY\tus-west-2b\tusw2-az1\tr6i.large\tLinux/UNIX\t0.041200\t2026-01-01T06:00:00+00:00\n" +
		"SPOTPRICEHISTORY\tus-west-2c\tusw2-az3\tc7g.xlarge\tLinux/UNIX\t0.053312\t2026-01-01T07:30:00+00:00\n",
	"old tools":     "SPOTINSTANCEPRICE\t0.0412\t2026-01-01T06:00:00+0000\tr6i.large\tLinux/UNIX\tus-west-2b\t\nSPOTINSTANCEPRICE\t0.053312\t2026-01-01T07:30:00+0000\tc7g.xlarge\tLinux/UNIX\tus-west-2c\t\n",
	"blank text":    "us-west-2b        r6i.large     Linux/UNIX      0.041200        2026-01-01T06:00:00+00:00\nus-west-2c        c7g.xlarge      Linux/UNIX      0.053312        2026-01-01T07:30:00+00:00\n",
	"single blanks": "us-west-2b r6i.large 0.041200 2026-01-01T06:00:00+00:00\nus-west-2c c7g.xlarge 0.053312 2026-01-01T07:30:00+00:00\n",
	"drawn": `-----------------------------------------------------------------------------------------------
|                                  DescribeSpotPriceHistory                                   |
+----------------------------+----------------------------------------------------------------+
|  NextToken                 |  abc==                                                         |
+----------------------------+----------------------------------------------------------------+
||                                     SpotPriceHistory                                      ||
|+-----------------+--------------+---------------------+-----------+------------------------+|
|| AvailabilityZone | InstanceType | ProductDescription | SpotPrice |       Timestamp         ||
|+-----------------+--------------+---------------------+-----------+------------------------+|
||  us-west-2b     |  r6i.large   |  Linux/UNIX         |  0.041200 |  2026-01-01T06:00:00Z  ||
||  us-west-2c     |  c7g.xlarge  |  Linux/UNIX         |  0.053312 |  2026-01-01T07:30:00Z  ||
|+-----------------+--------------+---------------------+-----------+------------------------+|
`,
	"drawn query": `------------------------------------------------------------------
|                    DescribeSpotPriceHistory                    |
+------------+-------------+------------+------------------------+
|  us-west-2b|  r6i.large  |  0.041200  |  2026-01-01T06:00:00Z  |
|  us-west-2c|  c7g.xlarge |  0.053312  |  2026-01-01T07:30:00Z  |
+------------+-------------+------------+------------------------+
`,
	"DuckDB": `┌──────────────────────┬────────────┬───────────────┬────────────┐
│      timestamp       │     az     │ instance_type │ spot_price │
├──────────────────────┼────────────┼───────────────┼────────────┤
│ 2026-01-01T06:00:00Z │ us-west-2b │ r6i.large     │     0.0412 │
│ 2026-01-01T07:30:00Z │ us-west-2c │ c7g.xlarge    │   0.053312 │
└──────────────────────┴────────────┴───────────────┴────────────┘
`,
	"psql":     "      timestamp       |     az     | instance_type | spot_price\n----------------------+------------+---------------+-----------\n 2026-01-01T06:00:00Z | us-west-2b | r6i.large     |     0.0412\n 2026-01-01T07:30:00Z | us-west-2c | c7g.xlarge    |   0.053312\n",
	"array":    `[{"AvailabilityZone":"us-west-2b","InstanceType":"r6i.large","SpotPrice":"0.041200","Timestamp":"2026-01-01T06:00:00+00:00"},` + "\n" + `{"AvailabilityZone":"us-west-2c","InstanceType":"c7g.xlarge","ProductDescription":"Linux/UNIX","SpotPrice":0.053312,"Timestamp":1767252600000}]`,
	"lines":    `{"timestamp":"2026-01-01 06:00:00+00:00","az":"us-west-2b","instance_type":"r6i.large","price":4.12e-2,"tags":["x"],"extra":{"a":1}}` + "\n" + `{"az":"us-west-2c","instance_type":"c7g.xlarge","price":0.053312,"timestamp":"2026-01-01T07:30:00.000Z"}` + "\n",
	"pages":    `[{"SpotPriceHistory":[{"AvailabilityZone":"us-west-2b","AvailabilityZoneId":"usw2-az1","InstanceType":"r6i.large","SpotPrice":"0.0412","Timestamp":"2026-01-01T06:00:00Z"}],"NextToken":"a","ResponseMetadata":{"RequestId":"r","HTTPHeaders":{"date":"Thu, 01 Jan 2026"}}},{"SpotPriceHistory":[{"AvailabilityZone":"us-west-2c","InstanceType":"c7g.xlarge","SpotPrice":"0.053312","Timestamp":"2026-01-01T07:30:00Z"}]}]`,
	"wrapped":  `{"count":2,"data":[{"zone":"us-west-2b","instanceType":"r6i.large","spotPrice":0.0412,"time":"2026-01-01T06:00:00Z"},{"zone":"us-west-2c","instanceType":"c7g.xlarge","spotPrice":0.053312,"time":"2026-01-01T07:30:00Z"}]}`,
	"arrays":   `[["us-west-2b","r6i.large","0.0412","2026-01-01T06:00:00Z"],["us-west-2c","c7g.xlarge","0.053312","2026-01-01T07:30:00Z"]]`,
	"split":    `{"columns":["az","instance_type","price","timestamp"],"index":[0,1],"data":[["us-west-2b","r6i.large",0.0412,1767247200000],["us-west-2c","c7g.xlarge",0.053312,1767252600000]]}`,
	"columnar": `{"az":{"0":"us-west-2b","1":"us-west-2c"},"instance_type":{"0":"r6i.large","1":"c7g.xlarge"},"price":{"0":0.0412,"1":0.053312},"timestamp":{"0":1767247200000,"1":1767252600000}}`,
	"lists":    `{"az":["us-west-2b","us-west-2c"],"instance_type":["r6i.large","c7g.xlarge"],"price":[0.0412,0.053312],"timestamp":[1767247200,1767252600]}`,
	"DynamoDB": `{"Item":{"az":{"S":"us-west-2b"},"instance_type":{"S":"r6i.large"},"price":{"N":"0.0412"},"timestamp":{"S":"2026-01-01T06:00:00Z"}}}` + "\n" + `{"Item":{"az":{"S":"us-west-2c"},"instance_type":{"S":"c7g.xlarge"},"price":{"N":"0.053312"},"timestamp":{"N":"1767252600"}}}`,
	"YAML":     "NextToken: ''\nSpotPriceHistory:\n- AvailabilityZone: us-west-2b\n  InstanceType: r6i.large\n  SpotPrice: '0.041200'\n  Timestamp: '2026-01-01T06:00:00+00:00'\n- AvailabilityZone: us-west-2c\n  InstanceType: c7g.xlarge\n  SpotPrice: '0.053312'\n  Timestamp: '2026-01-01T07:30:00+00:00'\n",
	"YAML stream": "- SpotPriceHistory:\n  - AvailabilityZone: us-west-2b\n    InstanceType: r6i.large\n    SpotPrice: '0.041200'\n    Timestamp: '2026-01-01T06:00:00+00:00'\n" +
		"- SpotPriceHistory:\n  - AvailabilityZone: us-west-2c\n    InstanceType: c7g.xlarge\n    SpotPrice: '0.053312'\n    Timestamp: '2026-01-01T07:30:00+00:00'\n",
}

// However two prices are written, they are the same two prices.
func TestImportTables(t *testing.T) {
	for name, text := range tables {
		t.Run(name, func(t *testing.T) {
			_, report := checkImport(t, Options{}, twoPrices, put(t, "x", text))
			if report.Rows != 2 || report.Bad != 0 {
				t.Errorf("%+v", report)
			}
		})
	}
}

func zstandard(text string) string {
	w, _ := zstd.NewWriter(nil)
	return string(w.EncodeAll([]byte(text), nil))
}

// utf16le encodes text as shells of Windows do.
func utf16le(text string) string {
	var b bytes.Buffer
	for _, u := range utf16.Encode([]rune("\ufeff" + text)) {
		b.Write([]byte{byte(u), byte(u >> 8)})
	}
	return b.String()
}

// What is packed is read as what it holds, also where several files were put behind each
// other.
func TestImportPacked(t *testing.T) {
	lines := strings.SplitAfter(tables["text"], "\n")
	for name, text := range map[string]string{
		"zstd": zstandard(tables["text"]), "zstd twice": zstandard(lines[0]) + zstandard(lines[1]),
		"zstd of JSON": zstandard(tables["pages"]), "gzip": gzipped(t, tables["drawn"]),
		"UTF-8 mark": "\ufeff" + tables["semicolons"], "UTF-16": utf16le(tables["array"]), "UTF-16 of CSV": utf16le(tables["blanks"]),
	} {
		t.Run(name, func(t *testing.T) { checkImport(t, Options{}, twoPrices, put(t, "x.tsv.zst", text)) })
	}
	for name, c := range map[string]struct {
		text string
		want error
		says string
	}{
		"cut zstd": {zstandard(strings.Repeat(tables["text"], 2000))[:100], trace.ErrCorrupt, ""},
		"zip":      {"PK\x03\x04....", trace.ErrFormat, "file of zip; unpack"},
	} {
		if _, _, err := Import([]string{put(t, "x", c.text)}, Options{}); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Zone IDs stay what they are, and products are kept apart.
func TestImportArchive(t *testing.T) {
	src := put(t, "2026-01.tsv", "euc1-az2\ti4i.large\tLinux/UNIX\t0.0771\t2026-01-01T00:00:00+00:00\n"+
		"euc1-az3\ti4i.large\tRed Hat Enterprise Linux\t0.1058\t2026-01-01T01:00:00+00:00\neuc1-az3\ti4i.large\tSUSE Linux\t0.1271\t2026-01-01T01:00:00+00:00\n")
	_, report := checkImport(t, Options{}, `
aws/eu-central-1/euc1-az2/i4i.large 01T00:00:00 spot=0.0771
aws/eu-central-1/euc1-az3/i4i.large/Red Hat Enterprise Linux 01T01:00:00 spot=0.1058
aws/eu-central-1/euc1-az3/i4i.large/SUSE Linux 01T01:00:00 spot=0.1271`, src)
	if report.Formats[0] != "TSV of Spot prices" {
		t.Errorf("%+v", report)
	}
}

// Names that folders and options give hold where no column has them.
func TestImportNamedOutside(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"prices/instance_type=r6i.large/az=us-west-2b/part-0.csv":       "timestamp,price\n2026-01-01T06:00:00Z,0.0412\n",
		"prices/instance_type=c7g.xlarge/az=us-west-2c/2026-01-01.json": `{"timestamp":"2026-01-01T07:30:00Z","price":"0.053312"}`,
		"prices/_SUCCESS":       "",
		"prices/.part-0.crc":    "crc",
		"prices/README.md":      "These are prices.\n",
		"one/a.csv":             "time,price\n2026-01-01T06:00:00Z,0.0412\n",
		"zone/type=a.csv":       "time,price\n2026-01-01T06:00:00Z,0.0412\n", // neither states a value
		"none/README":           "no prices\n",
		"empty/sub/_committed_": "",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, report := checkImport(t, Options{}, twoPrices, filepath.Join(dir, "prices"))
	if len(report.Skipped) != 1 || !strings.Contains(report.Skipped[0],
		"README.md: format not understood: it starts with \"These are prices.\"") {
		t.Errorf("skipped %q", report.Skipped)
	}
	for _, name := range []string{"one", "zone"} {
		checkImport(t, Options{Zone: "us-west-2b", Type: "r6i.large"},
			"aws/us-west-2/us-west-2b/r6i.large 01T06:00:00 spot=0.0412", filepath.Join(dir, name))
	}
	for name, want := range map[string]error{"none": trace.ErrFormat, "empty": trace.ErrEmpty} {
		if _, _, err := Import([]string{filepath.Join(dir, name)}, Options{}); !errors.Is(err, want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Columns that mean nothing are named; those that count rows are not.
func TestImportUnused(t *testing.T) {
	_, report := checkImport(t, Options{}, "aws/us-west-2/us-west-2b/r6i.large 01T06:00:00 spot=0.0412",
		put(t, "x.csv", "index,Savings,timestamp,az,instance_type,price,mood\n0,1,2026-01-01T06:00:00Z,us-west-2b,r6i.large,0.0412,good\n"))
	if !reflect.DeepEqual(report.Unused, []string{"Savings", "mood"}) {
		t.Errorf("unused %q", report.Unused)
	}
}

// What does not fit is said with what there is, what is missing and what comes nearest. What
// can be read in two ways is not read.
func TestImportExplains(t *testing.T) {
	const header = "timestamp,az,instance_type,price\n"
	for name, c := range map[string]struct{ text, says string }{
		"misspelt": {"timestamp,az,instance_typ,prize\n",
			`its columns are "timestamp", "az", "instance_typ", "prize"; missing are the instance type (as instance_type), of which column "instance_typ" comes nearest; the price (as spot_price), of which column "prize" comes nearest`},
		"longer":  {"event_timestamp,az,instance_type,price_eur\n", `the price (as spot_price), of which column "price_eur" comes nearest`},
		"missing": {"timestamp;az;price\n1;2;3\n", `missing are the instance type (as instance_type)`},
		"JSON": {`[{"az":"us-east-1a","when":"2026-01-01","kind":"m5.large","cents":4}]`,
			`its columns are "az", "when", "kind", "cents"; missing are the time`},
		"two prices": {"us-west-2b,r6i.large,0.0412,0.126,2026-01-01T06:00:00Z\n",
			"its columns 3 and 4 both look like the price: put a line with names"},
		"no price": {"us-west-2b,r6i.large,2026-01-01T06:00:00Z\n",
			`no column looks like the price in "us-west-2b | r6i.large | 2026-01-01T06:00:00Z"`},
		"two times": {"time,ts,az,instance_type,price\n", `columns "time" and "ts" may both be the time`},
		"longer column": {`{"timestamp":["2026-01-01T06:00:00Z"],"az":["us-west-2b"],"instance_type":["r6i.large"],"price":[0.0412,0.05]}`,
			`"timestamp" has 1 values and "price" 2`},
		"broken line": {tables["lines"] + "no JSON\n", "near line 3: invalid character"},
		"day first": {header + "01/02/2026 06:00,us-west-2b,r6i.large,0.0412\n",
			`:2: time "01/02/2026 06:00" is not clear: its day may be its month`},
		"day, no header": {"01/02/2026 06:00,us-west-2b,r6i.large,0.0412\n", `:1: time "01/02/2026 06:00" is not clear`},
		"euros":          {header + "2026-01-01T06:00:00Z,us-west-2b,r6i.large,€0.0412\n", `:2: price "€0.0412" is not in dollars`},
		"code of euros":  {header + "2026-01-01T06:00:00Z,us-west-2b,r6i.large,0.0412 EUR\n", `:2: price "0.0412 EUR" is not in dollars`},
		"currency":       {"timestamp,az,instance_type,price,currency\n2026-01-01T06:00:00Z,us-west-2b,r6i.large,0.0412,EUR\n", `:2: currency "EUR" is not USD`},
		"thousands": {"timestamp;az;instance_type;price\n2026-01-01T06:00:00Z;us-west-2b;r6i.large;1,234\n",
			`:2: price "1,234" is not clear: it may be 1.234 or 1234`},
		"region for zone": {"timestamp,region,instance_type,price\n2026-01-01T06:00:00Z,us-west-2,r6i.large,0.0412\n",
			`:2: region "us-west-2" is not a zone`},
		"other region":    {"timestamp,region,az,instance_type,price\n2026-01-01T06:00:00Z,us-east-1,us-west-2b,r6i.large,0.0412\n", `:2: zone "us-west-2b" is not in region "us-east-1"`},
		"other zone time": {header + "2026-01-01 06:00:00 PST,us-west-2b,r6i.large,0.0412\n", `:2: time "2026-01-01 06:00:00 PST" is neither`},
	} {
		path := put(t, "x", c.text)
		_, _, err := Import([]string{path}, Options{})
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %s", name, err, c.says)
		}
	}
}
