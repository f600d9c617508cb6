package format

import (
	"encoding/xml"
	"io"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A junitSuites is the root of a JUnit report. It only has elements and attributes that all CI
// servers support, and no times, so that equal runs have equal files.
type junitSuites struct {
	XMLName xml.Name `xml:"testsuites"`
	junitCounts
	Suites []junitSuite `xml:"testsuite"`
}

// junitCounts counts the tests of a suite, or of all suites, by result.
type junitCounts struct {
	Name     string `xml:"name,attr"`
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Errors   int    `xml:"errors,attr"`
	Skipped  int    `xml:"skipped,attr"`
}

type junitSuite struct {
	junitCounts

	// Properties describe the traces.
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitMessage `xml:"failure"`
	Error   *junitMessage `xml:"error"`
	Skipped *junitMessage `xml:"skipped"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// message converts a text of one or more lines to an element. Lists show its first line.
func message(text string) *junitMessage {
	return &junitMessage{firstLine(text), text}
}

// writeJUnit writes the report as JUnit XML. There is a test for each gate, policy and scenario;
// for the runs of each policy in each scenario; for the results of each policy across scenarios;
// and for each change relative to the other side. What could not be estimated is a skipped test,
// which is JUnit's only state between a pass and a failure. A gate without a value is an error.
func writeJUnit(w io.Writer, r *eval.Report) error {
	out := junitSuites{junitCounts: junitCounts{Name: "spotter eval"}}
	var properties []junitProperty
	for _, note := range traceNotes(r) {
		properties = append(properties, junitProperty{"trace", note})
	}
	for _, s := range []struct {
		name  string
		cases []junitCase
	}{{"gates", junitGates(r)}, {"runs", junitRuns(r)}, {"across", junitAcross(r)}, {"comparison", junitComparison(r)},
		{"estimates", junitEstimates(r)}} {
		if len(s.cases) == 0 {
			continue
		}
		suite := junitSuite{junitCounts{Name: s.name}, properties, s.cases}
		for i := range s.cases {
			suite.count(&s.cases[i])
			out.count(&s.cases[i])
		}
		out.Suites = append(out.Suites, suite)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// count counts a test.
func (s *junitCounts) count(c *junitCase) {
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
}

func junitGates(r *eval.Report) []junitCase {
	var out []junitCase
	for i := range r.Gates {
		g := &r.Gates[i]
		c := junitCase{Class: "spotter.gates", Name: judged(r, g).String()}
		switch line := gateLine(r, g); {
		case g.Pass:
			c.Out = line
		case g.Estimated():
			c.Failure = message(line)
		default:
			c.Error = message(line)
		}
		out = append(out, c)
	}
	return out
}

// junitRuns returns a test per scenario and policy, with its worst run.
func junitRuns(r *eval.Report) []junitCase {
	var out []junitCase
	if r.Stopped {
		out = append(out, junitCase{Class: "spotter.runs", Name: "complete", Error: message(Incomplete(r))})
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		for p := range g.Policies {
			c := junitCase{Class: "spotter.runs." + g.Scenario, Name: r.Config.Policies[p]}
			if worst := g.Policies[p].Worst; worst >= 0 {
				c.Out = "worst run: " + r.Command(worst)
			}
			if o := &g.Policies[p].Outage; o.Incidents > 0 {
				c.Out += "\noutages " + outageWords(r, o)
			}
			if words := ViolationWords(&g.Policies[p]); words != "" {
				c.Out = strings.TrimPrefix(c.Out+"\n"+words, "\n")
			}
			var broke []string
			for _, i := range r.RunsOf(g, p) {
				if err := r.Runs[i].Err; err != nil && !r.Runs[i].Unfinished() {
					broke = append(broke, firstLine(err.Error())+"\n"+r.Command(i))
				}
			}
			if len(broke) > 0 {
				c.Error = message(strings.Join(broke, "\n"))
				c.Error.Message = figures.Count(len(broke), "run") + " broke: " + c.Error.Message
			}
			out = append(out, c)
		}
	}
	return out
}

// junitAcross returns a test per policy, which always passes.
func junitAcross(r *eval.Report) []junitCase {
	var out []junitCase
	for i, line := range acrossLines(r) {
		out = append(out, junitCase{Class: "spotter.across", Name: r.Config.Policies[i], Out: line})
	}
	return out
}

func junitComparison(r *eval.Report) []junitCase {
	if r.Comparison == nil {
		return nil
	}
	var out []junitCase
	c := comparison{r.Comparison}
	for i := range c.Changes {
		x := &c.Changes[i]
		one := junitCase{Class: "spotter.comparison", Name: c.name(x)}
		switch x.Outcome {
		case eval.Worse:
			one.Failure = message(c.sentence(x))
		case eval.Undecided, eval.NotComparable:
			one.Skipped = message(c.sentence(x))
		default:
			one.Out = c.sentence(x)
		}
		out = append(out, one)
	}
	return out
}

// junitEstimates returns a skipped test for each warning.
func junitEstimates(r *eval.Report) []junitCase {
	var out []junitCase
	for _, text := range Warnings(r) {
		out = append(out, junitCase{Class: "spotter.estimates", Name: text, Skipped: message(text)})
	}
	return out
}
