package eval

import (
	"encoding/xml"
	"io"
	"strings"
)

// A junitSuites is the root of a JUnit report, as CI servers read it: the
// elements and attributes that all of them know, and no times, since equal
// runs give equal files.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string `xml:"name,attr"`
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Errors   int    `xml:"errors,attr"`
	Skipped  int    `xml:"skipped,attr"`

	// Properties say what the runs were on.
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

// message puts a text of one or more lines into an element: the first line is
// what lists show.
func message(text string) *junitMessage {
	return &junitMessage{firstLine(text), text}
}

// WriteJUnit writes the report as JUnit XML: a test for each gate, policy and
// scenario, for the runs of each policy in each scenario, for what is said of a
// policy across several of them, and for each change against the other side. What could not be estimated is a skipped test, which is what
// JUnit has between a pass and a failure; a gate without a value is an error.
func (r *Report) WriteJUnit(w io.Writer) error {
	out := junitSuites{Name: "spotter eval"}
	var properties []junitProperty
	for _, note := range r.traceNotes() {
		properties = append(properties, junitProperty{"trace", note})
	}
	for _, s := range []junitSuite{
		{Name: "gates", Cases: r.junitGates()},
		{Name: "runs", Cases: r.junitRuns()},
		{Name: "across", Cases: r.junitAcross()},
		{Name: "comparison", Cases: r.junitComparison()},
		{Name: "estimates", Cases: r.junitEstimates()},
	} {
		if len(s.Cases) == 0 {
			continue
		}
		s.count()
		s.Properties = properties
		out.Tests, out.Failures = out.Tests+s.Tests, out.Failures+s.Failures
		out.Errors, out.Skipped = out.Errors+s.Errors, out.Skipped+s.Skipped
		out.Suites = append(out.Suites, s)
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

func (s *junitSuite) count() {
	s.Tests = len(s.Cases)
	for i := range s.Cases {
		switch c := &s.Cases[i]; {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
}

func (r *Report) junitGates() []junitCase {
	var out []junitCase
	for i := range r.Gates {
		g := &r.Gates[i]
		c := junitCase{Class: "spotter.gates", Name: r.judged(g).String()}
		switch line := r.gateLine(g); {
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

// junitRuns has a test per scenario and policy, with the worst run of each.
func (r *Report) junitRuns() []junitCase {
	var out []junitCase
	if r.Stopped {
		out = append(out, junitCase{Class: "spotter.runs", Name: "complete", Error: message(r.Incomplete())})
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		for p := range g.Policies {
			c := junitCase{Class: "spotter.runs." + g.Scenario, Name: r.Config.Policies[p]}
			if worst := g.Policies[p].Worst; worst >= 0 {
				c.Out = "worst run: " + r.command(worst)
			}
			if o := &g.Policies[p].Outage; o.Incidents > 0 {
				c.Out += "\noutages " + r.outageWords(o)
			}
			if words := g.Policies[p].ViolationWords(); words != "" {
				c.Out = strings.TrimPrefix(c.Out+"\n"+words, "\n")
			}
			var broke []string
			for _, k := range g.Cases {
				for _, i := range r.indices(k, p) {
					if err := r.Runs[i].Err; err != nil && !r.Runs[i].Unfinished() {
						broke = append(broke, firstLine(err.Error())+"\n"+r.command(i))
					}
				}
			}
			if len(broke) > 0 {
				c.Error = message(strings.Join(broke, "\n"))
				c.Error.Message = plural(len(broke), "run") + " broke: " + c.Error.Message
			}
			out = append(out, c)
		}
	}
	return out
}

// junitAcross has a test per policy, which none fails.
func (r *Report) junitAcross() []junitCase {
	var out []junitCase
	for i, line := range r.acrossLines() {
		out = append(out, junitCase{Class: "spotter.across", Name: r.Config.Policies[i], Out: line})
	}
	return out
}

func (r *Report) junitComparison() []junitCase {
	if r.Comparison == nil {
		return nil
	}
	var out []junitCase
	for i := range r.Comparison.Changes {
		x := &r.Comparison.Changes[i]
		c := junitCase{Class: "spotter.comparison", Name: r.Comparison.name(x)}
		switch x.Verdict {
		case Worse:
			c.Failure = message(r.Comparison.sentence(x))
		case Undecided, NotComparable:
			c.Skipped = message(r.Comparison.sentence(x))
		default:
			c.Out = r.Comparison.sentence(x)
		}
		out = append(out, c)
	}
	return out
}

// junitEstimates are the warnings.
func (r *Report) junitEstimates() []junitCase {
	var out []junitCase
	for _, text := range r.Warnings() {
		out = append(out, junitCase{Class: "spotter.estimates", Name: text, Skipped: message(text)})
	}
	return out
}
