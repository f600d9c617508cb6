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

// writeGitHub writes the findings as workflow commands, which GitHub shows as
// annotations of the run: what went wrong as errors, what could not be
// estimated as warnings, and as notices what the runs were on, the headline of a
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
	for _, kind := range []struct {
		name  string
		level findingLevel
	}{{"error", levelError}, {"warning", levelWarning}, {"notice", levelNote}} {
		var of []finding
		for _, f := range findings(r) {
			if f.level == kind.level {
				of = append(of, f)
			}
		}
		for i, f := range of {
			if i == annotationsMax-1 && len(of) > annotationsMax {
				annotate(b, kind.name, "spotter", fmt.Sprintf("and %d more, which the report shows", len(of)-i))
				break
			}
			annotate(b, kind.name, "spotter: "+f.title, f.detail)
		}
	}
	return b.Flush()
}

// annotate writes one command. What would end it, or a property of it, is
// written as GitHub reads it back.
func annotate(w io.Writer, kind, title, text string) {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	fmt.Fprintf(w, "::%s title=%s::%s\n", kind, property.Replace(title), data.Replace(text))
}
