package report

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/test/golden"
)

var (
	styleBlock  = regexp.MustCompile(`(?s)<style>(.*?)</style>`)
	scriptBlock = regexp.MustCompile(`(?s)<script>(.*?)</script>`)
	cellTag     = regexp.MustCompile(`<(t[hd])[ >]`)
	dataBlock   = regexp.MustCompile(`(?s)<script type="text/plain" id="data">(.*?)</script>`)
)

// An element is one of a page that was read strictly.
type element struct {
	name string
	attr map[string]string
	path []string
	text string
}

// closed adds the ends of cells and rows, which HTML does not need and a strict reader does.
// A row is a line.
func closed(page string) string {
	lines := strings.SplitAfter(page, "\n")
	for k, line := range lines {
		if !strings.HasPrefix(line, "<tr") && !strings.HasPrefix(line, "<thead>") {
			continue
		}
		row, after, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "</thead>")
		out, end, from := "", "", 0
		for _, m := range cellTag.FindAllStringSubmatchIndex(row, -1) {
			out += row[from:m[0]] + end
			from, end = m[0], "</"+row[m[2]:m[3]]+">"
		}
		out += row[from:] + end + "</tr>"
		if strings.HasPrefix(line, "<thead>") {
			out += "</thead>" + after
		}
		lines[k] = out + "\n"
	}
	return strings.Join(lines, "")
}

// elements reads page, which must be well-formed: every element is closed, and
// every attribute is quoted. The script and the style are taken out before.
func elements(t *testing.T, page string) []element {
	t.Helper()
	page = closed(scriptBlock.ReplaceAllString(styleBlock.ReplaceAllString(page, "<style/>"), "<script/>"))
	d := xml.NewDecoder(strings.NewReader(page))
	d.Entity = xml.HTMLEntity
	var all []element
	var open []int
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			line, _ := d.InputPos()
			t.Fatalf("line %d: %v", line, err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			e := element{name: x.Name.Local, attr: map[string]string{}}
			for _, i := range open {
				e.path = append(e.path, all[i].name)
			}
			for _, a := range x.Attr {
				e.attr[a.Name.Local] = a.Value
			}
			all, open = append(all, e), append(open, len(all))
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			for _, i := range open {
				all[i].text += string(x)
			}
		}
	}
}

// named are those of elements that have a name.
func named(all []element, name string) []element {
	return slices.DeleteFunc(slices.Clone(all), func(e element) bool { return e.name != name })
}

// The words of the page are as its golden file has them, but for the runs, the definitions
// and the market model, which have tests where they are made.
func TestWords(t *testing.T) {
	for name, scenarios := range map[string][]string{"one": {"web-week"}, "several": {"web-week", "batch-night"}} {
		page := written(t, compared(t, shown(scenarios...), fake{samples: 24}))
		var b strings.Builder
		skip, runs := false, false
		for _, e := range elements(t, page) {
			words := strings.Join(strings.Fields(e.text), " ")
			if e.name == "caption" {
				runs = strings.HasPrefix(words, "Runs of ")
			}
			switch e.name {
			case "h1", "h2", "h3":
				skip = skip && e.name == "h3" || words == "Definitions" || words == "The market model"
				fmt.Fprintf(&b, "\n%s %s\n", strings.Repeat("#", int(e.name[1]-'0')), words)
			case "p", "li", "caption", "th", "td", "dt", "dd", "figcaption":
				if !skip && !runs { // all runs are too many to read

					fmt.Fprintf(&b, "%s: %s\n", e.name, words)
				}
			case "desc":
				fmt.Fprintf(&b, "picture: %s\n", words)
			}
		}
		golden.Hold(t, "testdata/"+name+".txt", b.String())
	}
}

// The page leads nowhere: it has no address of a host in any attribute, its
// style loads nothing, and its policy allows no script but its own.
func TestLeadsNowhere(t *testing.T) {
	page := written(t, compared(t, shown("web-week", "batch-night"), fake{samples: 24}))
	all := elements(t, page)
	ids := map[string]bool{}
	for _, e := range all {
		if id := e.attr["id"]; id != "" {
			if ids[id] {
				t.Errorf("two elements are called %s", id)
			}
			ids[id] = true
		}
	}
	for _, e := range all {
		for name, value := range e.attr {
			switch {
			case name == "xmlns":
			case name == "href" && strings.HasPrefix(value, "#"):
				if !ids[value[1:]] {
					t.Errorf("%s leads to nothing", value)
				}
			case slices.Contains([]string{"href", "src", "srcset", "action", "data", "poster", "background", "formaction", "ping"}, name):
				t.Errorf("<%s %s=%q>", e.name, name, value)
			case strings.Contains(value, "//") || strings.Contains(value, "url("):
				t.Errorf("<%s %s=%q>", e.name, name, value)
			case name == "aria-labelledby" || name == "aria-describedby":
				if !ids[value] {
					t.Errorf("<%s %s=%q> names nothing", e.name, name, value)
				}
			}
		}
	}
	if found := regexp.MustCompile(`url\(|@import|//`).FindString(styleBlock.FindStringSubmatch(page)[1]); found != "" {
		t.Errorf("the style has %s", found)
	}
	script := scriptBlock.FindStringSubmatch(page)[1]
	if found := regexp.MustCompile(`fetch|XMLHttp|import\(|https?:|WebSocket|sendBeacon`).FindString(script); found != "" {
		t.Errorf("the script has %s", found)
	}
	sum := sha256.Sum256([]byte(script))
	want := "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "';"
	if got := named(all, "meta")[1].attr["content"]; !strings.HasPrefix(got, want) {
		t.Errorf("the policy is %q, want %q", got, want)
	}
}

// Headings descend by one, tables have captions and headings of columns and
// rows, pictures a title and a description, and one landmark is the main one.
func TestAccessible(t *testing.T) {
	all := elements(t, written(t, compared(t, shown("web-week", "batch-night"), fake{samples: 24})))
	level := byte('0')
	for i, e := range all {
		switch e.name {
		case "h1", "h2", "h3":
			if e.name[1] > level+1 {
				t.Errorf("%s %q follows h%c", e.name, e.text, level)
			}
			level = e.name[1]
		case "th":
			// Without a scope it is the heading of its column in a row of headings, and of
			// its row where it is the first of that.
			if !slices.Contains(e.path, "thead") && all[i-1].name != "tr" {
				t.Errorf("the heading %q is of nothing", e.text)
			}
		case "svg":
			if e.attr["role"] != "img" || e.attr["aria-labelledby"] == "" || e.attr["aria-describedby"] == "" {
				t.Errorf("a picture without words: %v", e.attr)
			}
		case "desc":
			if strings.TrimSpace(e.text) == "" {
				t.Error("an empty description")
			}
		}
	}
	if tables, captions := len(named(all, "table")), len(named(all, "caption")); tables != captions || tables < 10 {
		t.Errorf("%d tables with %d captions", tables, captions)
	}
	if n := len(named(all, "main")); n != 1 {
		t.Errorf("%d main parts", n)
	}
	if n := len(named(all, "svg")); n != 2*6 { // scenarios are never drawn together
		t.Errorf("%d pictures", n)
	}
}

// Equal comparisons give equal bytes, whatever the number of workers.
func TestSameBytes(t *testing.T) {
	c := shown("web-week")
	c.Parallel = 1
	first := written(t, compared(t, c, fake{samples: 24}))
	c.Parallel = 4
	if second := written(t, compared(t, c, fake{samples: 24})); second != first {
		t.Error("the second page has other bytes")
	}
}

// Names that are markup stay words, wherever they stand.
func TestHostileNames(t *testing.T) {
	const attack = `x</title></script><script>alert(1)</script><img src=x onerror="alert(2)">'"&{{.}}`
	c := shown("web-week")
	c.Policies = append(c.Policies, "static:a="+attack)
	c.Baseline = "static:b=" + attack
	c.Version, c.Invocation = attack, "spotter eval "+attack
	c.Command = func(eval.Job) string { return attack }
	for i := range c.Cases {
		w := c.Cases[i].Bound
		c.Cases[i].Scenario = attack
		w.Warnings = []string{attack}
		w.Trace.Name, w.Trace.About = attack, attack
		w.Markets[1].Name = attack
	}
	page := written(t, compared(t, c, fake{samples: 24, fail: func(j eval.Job) bool { return j.Seed == 2 && j.Policy == "spot" }}))
	all := elements(t, page)
	if n := len(named(all, "script")); n != 2 { // the second are data
		t.Errorf("%d scripts", n)
	}
	if n := len(named(all, "img")); n != 0 {
		t.Errorf("%d images", n)
	}
	for _, e := range all {
		for name := range e.attr {
			if strings.HasPrefix(name, "on") {
				t.Errorf("<%s %s>", e.name, name)
			}
		}
	}
	if title := named(all, "title")[0].text; !strings.Contains(title, attack) {
		t.Errorf("the title %q has not the name as it is", title)
	}
}

// A page of 6 scenarios, 20 seeds and 6 policies has less than 1 MB. Its scenarios are
// open, the tables that are long are folded away.
func TestSize(t *testing.T) {
	var names []string
	for i := range 6 {
		names = append(names, fmt.Sprintf("scenario-with-a-name-%d", i))
	}
	c := shown()
	c.Cases, c.Seeds = cases(1, names...), eval.DefaultSeeds(20)
	page := written(t, compared(t, c, fake{samples: 168}))
	if len(page) > 1_000_000 {
		t.Errorf("%d bytes", len(page))
	}
	t.Logf("%d bytes", len(page))
	for _, e := range named(elements(t, page), "details") {
		if _, open := e.attr["open"]; open != strings.HasPrefix(e.attr["id"], "scenario-") {
			t.Errorf("%q is open: %v", e.attr["id"], open)
		}
	}
}
