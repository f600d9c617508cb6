package eval

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestTargets: where each output goes and in which format, and that an ending contradicts none.
func TestTargets(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "table>"},
		{"--format json", "json>"},
		{"--out a.json", "json>a.json"},
		{"--out a", "table>a"},
		{"--format markdown --out a.json", "--out: a.json: its ending means json, but it would be written as markdown"},
		{"--out junit=x.json", "--out: x.json: its ending means json, but it would be written as junit"},
		{"--out A.MD --out b.xml --out c.csv --out e.txt --out f.parquet", "markdown>A.MD junit>b.xml csv>c.csv table>e.txt parquet>f.parquet"},
		{"--out comment=- --out junit=x.xml", "comment> junit>x.xml"},
		{"--out ./a=b.json", "json>./a=b.json"},
		{"--format csv --out - --out json=x", "csv> json>x"},
	} {
		var f evalFlags
		f.Flags = pflag.NewFlagSet("eval", pflag.ContinueOnError)
		f.Flags.StringVar(&f.format, "format", "table", "")
		f.Flags.StringArrayVar(&f.out, "out", nil, "")
		if err := f.Flags.Parse(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		got, err := f.targets()
		var texts []string
		for _, x := range got {
			texts = append(texts, string(x.format)+">"+x.path)
		}
		text := strings.Join(texts, " ")
		if err != nil {
			text = err.Error()
		}
		if text != c.want {
			t.Errorf("%s: %s, want %s", c.args, text, c.want)
		}
	}
}
