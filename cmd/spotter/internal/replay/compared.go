package replay

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/record"
)

// A compared is the result of a replay of a recording with one policy.
type compared struct {
	Scenario string `json:"scenario"`
	Seed     uint64 `json:"seed,omitempty"`

	// Recorded are the policies of the steps, and Again is the other policy; it is empty if each
	// step was decided again by its own policy.
	Recorded []string `json:"recorded"`
	Again    string   `json:"again,omitempty"`

	Steps          int `json:"steps"`
	StepsDiffering int `json:"steps_differing"`

	// Differences is the number of differences, of which Shown are the first.
	Differences int          `json:"differences"`
	Shown       []difference `json:"shown"`

	// Gaps are numbers of steps that the recording lacks, and Whole reports that no segment is
	// missing.
	Gaps  []gap `json:"gaps"`
	Whole bool  `json:"whole"`

	// Plans are the totals of the plans of both sides.
	Plans struct {
		Recorded plans `json:"recorded"`
		Again    plans `json:"again"`
	} `json:"plans"`
}

// A difference is an entry of a plan that the other plan lacks or has with other values. The side
// that lacks it is empty.
type difference struct {
	Step     int64     `json:"step"`
	At       time.Time `json:"at"`
	Recorded string    `json:"recorded,omitempty"`
	Again    string    `json:"again,omitempty"`

	text string
}

// A gap is a range of numbers of steps, both included.
type gap struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// A plans is the number of entries of plans by kind, and the sums of their dollars.
type plans struct {
	Steers        int `json:"steers"`
	Launches      int `json:"launches"`
	Drains        int `json:"drains"`
	DeletionCosts int `json:"deletion_costs"`
	Gates         int `json:"gates"`
	Pauses        int `json:"pauses"`
	Evictions     int `json:"evictions"`
	Holds         int `json:"holds"`

	Priced int     `json:"entries_with_dollars"`
	Before float64 `json:"usd_per_hour_before"`
	After  float64 `json:"usd_per_hour_after"`
}

func plansOf(t *record.Tally) plans {
	return plans{
		t.Steers, t.Launches, t.Drains, t.DeletionCosts, t.Gates, t.Pauses, t.Evicts, t.Holds,
		t.Priced, t.Before.Float(), t.After.Float(),
	}
}

// compared returns the result of a comparison.
func (a *replay) compared(r *record.Recording, c *record.Comparison) compared {
	out := compared{
		Scenario: r.Meta.Scenario, Seed: r.Meta.Seed, Recorded: a.recorded, Again: a.spec,
		Steps: c.Steps, StepsDiffering: c.Differing, Differences: c.Total, Shown: []difference{}, Gaps: []gap{}, Whole: len(r.Missing) == 0,
	}
	for _, d := range c.Differences {
		out.Shown = append(out.Shown, difference{d.Step, d.Now.Std(), d.Recorded, d.Again, d.String()})
	}
	for _, g := range c.Gaps {
		out.Gaps = append(out.Gaps, gap{g.First, g.Last})
	}
	out.Plans.Recorded, out.Plans.Again = plansOf(&c.Recorded), plansOf(&c.Again)
	return out
}

// writeAll writes comparisons as text, separated by empty lines.
func writeAll(out io.Writer, all []compared) error {
	w := bufio.NewWriter(out)
	for i := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := all[i].write(w); err != nil {
			return err
		}
	}
	return w.Flush()
}

func (c *compared) write(w io.Writer) error {
	fmt.Fprintf(w, "%d steps of %s", c.Steps, c.Scenario)
	if c.Seed != 0 {
		fmt.Fprintf(w, ", seed %d", c.Seed)
	}
	recorded := strings.Join(c.Recorded, ", then ")
	fmt.Fprintf(w, ", recorded under %s, taken again by %s: ", recorded, cmp.Or(c.Again, recorded))
	switch {
	case c.Differences > 0:
		fmt.Fprintf(w, "%d differ\n", c.StepsDiffering)
	case !c.Whole:
		fmt.Fprintln(w, "the plans that are there are the same, bit for bit")
	default:
		fmt.Fprintln(w, "every plan is the same, bit for bit")
	}
	c.writeGaps(w)
	if c.Differences == 0 {
		return nil
	}
	if err := tallies(w, &c.Plans.Recorded, &c.Plans.Again); err != nil {
		return err
	}
	for i := range c.Shown {
		fmt.Fprint(w, c.Shown[i].text)
	}
	if rest := c.Differences - len(c.Shown); rest > 0 {
		fmt.Fprintf(w, "and %d differences more; --show 0 shows all\n", rest)
	}
	return nil
}

// writeGaps writes which steps the recording lacks.
func (c *compared) writeGaps(w io.Writer) {
	const most = 5
	for _, g := range c.Gaps[:min(most, len(c.Gaps))] {
		fmt.Fprintf(w, "%s not in the recording\n", record.Span(g).Are("step"))
	}
	if rest := len(c.Gaps) - most; rest > 0 {
		fmt.Fprintf(w, "and %d gaps more\n", rest)
	}
}

// tallies writes the totals of the plans of both sides next to each other.
func tallies(out io.Writer, recorded, again *plans) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\trecorded\tagain\t")
	for _, row := range []struct {
		name string
		a, b int
	}{
		{"steers", recorded.Steers, again.Steers}, {"launches", recorded.Launches, again.Launches},
		{"drains", recorded.Drains, again.Drains}, {"deletion costs", recorded.DeletionCosts, again.DeletionCosts},
		{"gates", recorded.Gates, again.Gates}, {"pauses", recorded.Pauses, again.Pauses},
		{"evictions", recorded.Evictions, again.Evictions}, {"holds", recorded.Holds, again.Holds},
		{"entries with dollars", recorded.Priced, again.Priced},
	} {
		if row.a != 0 || row.b != 0 {
			fmt.Fprintf(w, "%s\t%d\t%d\t\n", row.name, row.a, row.b)
		}
	}
	if recorded.Priced+again.Priced > 0 {
		fmt.Fprintf(w, "$/h without them\t%s\t%s\t\n", policy.Dollars(recorded.Before).Short(),
			policy.Dollars(again.Before).Short())
		fmt.Fprintf(w, "$/h with them\t%s\t%s\t\n", policy.Dollars(recorded.After).Short(),
			policy.Dollars(again.After).Short())
	}
	return w.Flush()
}
