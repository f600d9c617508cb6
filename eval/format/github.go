package format

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/spotter-dev/spotter/eval"
)

// annotationsMax is how many annotations of a kind GitHub shows for a step.
const annotationsMax = 10

// An annotation is a workflow command that GitHub shows with a run.
type annotation struct{ title, text string }

// writeGitHub writes annotations of a run of GitHub's workflows: what went wrong as errors, what
// could not be estimated as warnings, and as notices what the runs were on, the headline of a
// comparison, what is said across several scenarios, and who does not keep the
// manifests. GitHub shows ten of a kind; where there are more, the tenth says
// how many.
func writeGitHub(w io.Writer, r *eval.Report) error {
	b := bufio.NewWriter(w)
	annotate(b, "notice", "spotter: prices", strings.Join(traceNotes(r), "\n"))
	if r.Comparison != nil {
		annotate(b, "notice", "spotter", Headline(r.Comparison))
	}
	if lines := acrossLines(r); lines != nil {
		annotate(b, "notice", "spotter: "+strings.ToLower(AcrossTitle(r)), strings.Join(lines, "\n"))
	}
	var warnings, notices []annotation
	for _, line := range Warnings(r) {
		warnings = append(warnings, annotation{"could not be estimated", line})
	}
	for _, line := range Violations(r) {
		notices = append(notices, annotation{"manifests not kept", line})
	}
	annotateAll(b, "error", faults(r))
	annotateAll(b, "warning", warnings)
	annotateAll(b, "notice", notices)
	return b.Flush()
}

// faults are what went wrong.
func faults(r *eval.Report) (out []annotation) {
	for i := range r.Gates {
		if g := &r.Gates[i]; !g.Pass && g.Estimated() {
			out = append(out, annotation{"gate failed", strings.TrimPrefix(gateLine(r, g), "✗ ")})
		}
	}
	if r.Stopped {
		out = append(out, annotation{"incomplete", Incomplete(r)})
	}
	for _, line := range missingLines(r) {
		out = append(out, annotation{"run broke", line})
	}
	if c := r.Comparison; c != nil {
		for _, line := range (comparison{c}).losses() {
			out = append(out, annotation{"worse than " + c.Other, line})
		}
	}
	return out
}

// annotateAll writes annotations of a kind, as many as GitHub shows.
func annotateAll(w io.Writer, kind string, all []annotation) {
	for i, a := range all {
		if i == annotationsMax-1 && len(all) > annotationsMax {
			annotate(w, kind, "spotter", fmt.Sprintf("and %d more, which the report shows", len(all)-i))
			return
		}
		annotate(w, kind, "spotter: "+a.title, a.text)
	}
}

// annotate writes one command. What would end it, or a property of it, is
// written as GitHub reads it back.
func annotate(w io.Writer, kind, title, text string) {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	fmt.Fprintf(w, "::%s title=%s::%s\n", kind, property.Replace(title), data.Replace(text))
}
