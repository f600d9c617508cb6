package input

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/ranges"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/edit"
)

// CaseFlags are the flags for the prices, the windows and the seeds of a comparison. Register adds
// the flags of the prices.
type CaseFlags struct {
	MarketFlags
	Seeds, Windows string
	Every          time.Duration

	windows WindowRange
	opened  Traces
}

// RegisterCases adds the flags for windows and seeds. The default is one window and the given
// seeds.
func (f *CaseFlags) RegisterCases(flags *pflag.FlagSet, seeds string) {
	f.registerCases(flags, seeds, "1", "")
}

// RegisterWeeks adds the flags for windows and seeds. The default is the weeks of the trace, and a
// total of runs runs of each policy, which [CaseFlags.SpreadSeeds] distributes.
func (f *CaseFlags) RegisterWeeks(flags *pflag.FlagSet, runs int) {
	f.registerCases(flags, "", "",
		fmt.Sprintf(" (default %d, or with several windows about that many over all of them)", runs))
}

func (f *CaseFlags) registerCases(flags *pflag.FlagSet, seeds, windows, seedsDefault string) {
	flags.StringVar(&f.Seeds, "seeds", seeds,
		"seeds of the weather in each window, `N|A-B,…`: N means 1…N, and A-A the one seed A"+seedsDefault)
	text := "windows `N|A-B,…|all`: N from --from on; all after the trace's first week, or of these the numbers A to B, " +
		"or every Nth with A-B/N"
	if windows == "" {
		text += fmt.Sprintf(" (default: %d, one started each week, if the trace is long enough and neither --from "+
			"nor the scenario gives a start, else 1)", scenarios.Weeks)
	}
	flags.StringVar(&f.Windows, "windows", windows, text)
	flags.DurationVar(&f.Every, "every", 0, "start a window every `DURATION`, as 168h for weeks (default: back to back)")
	cli.Section(flags, marketSection, "windows", "every")
}

// ParsedSeeds returns the seeds in --seeds.
func (f *CaseFlags) ParsedSeeds() ([]uint64, error) {
	seeds, err := ParseSeeds(f.Seeds)
	if err != nil {
		return nil,
			cli.Invalid(fmt.Errorf("--seeds: %w", err), "give a number of seeds, as --seeds 20, or which, as --seeds 5-9")
	}
	return seeds, nil
}

// ReadWindows parses --windows and --every. It must be called before [CaseFlags.WindowsOf].
func (f *CaseFlags) ReadWindows() (err error) {
	f.windows, f.opened = WindowRange{numbers: []int{0}, weekly: true}, Traces{}
	if f.Windows != "" || f.Flags.Changed("windows") {
		f.windows, err = ParseWindows(f.Windows)
	}
	if err != nil {
		return cli.Invalid(fmt.Errorf("--windows: %w", err), "give 1 or more, a range as 26-45, or all")
	}
	if f.Every < 0 {
		return cli.Invalid(fmt.Errorf("--every: %v is not a length of time", f.Every), "give 168h for a window a week")
	}
	return nil
}

// WindowsOf binds the windows of one scenario. It opens each trace only once.
func (f *CaseFlags) WindowsOf(sc *scenarios.Scenario, name string) ([]eval.Case, error) {
	r := f.windows
	stride := cmp.Or(f.Every, sc.Duration)
	if r.weekly && f.Every == 0 {
		stride = sc.Week()
	}
	if stride < sc.Duration {
		return nil, cli.Invalid(fmt.Errorf("--every: windows of %s are %v long and would overlap every %v", name,
			sc.Duration, stride), "give the length of a window or more")
	}
	if r.weekly {
		weeks, err := f.hasWeeks(sc, stride)
		if err != nil {
			return nil, err
		}
		if weeks {
			r.numbers = nil
			for i := range scenarios.Weeks {
				r.numbers = append(r.numbers, i)
			}
		}
	}
	var cases []eval.Case
	for window := range r.places {
		w, err := f.BindAt(sc, f.opened, r, time.Duration(window)*stride)
		if r.all && len(cases) > 0 && errors.Is(err, scenarios.ErrTooShort) {
			return cases, nil
		}
		if err != nil {
			return nil, err
		}
		cases = append(cases, eval.Case{Scenario: name, Window: window, Bound: w})
	}
	return cases, nil
}

// hasWeeks reports whether the trace of sc is long enough for the default number of windows at the
// given stride, and neither the user nor the scenario sets a start.
func (f *CaseFlags) hasWeeks(sc *scenarios.Scenario, stride time.Duration) (bool, error) {
	if f.from != "" || sc.Start != 0 {
		return false, nil
	}
	on, err := f.opened.open(cmp.Or(f.Trace, sc.Trace))
	if err != nil {
		return false, err
	}
	return on.weekly(sc, stride) != 0, nil
}

// SpreadSeeds sets the number of seeds of each window of cases unless the user sets it: about runs
// runs over the windows of a scenario, and at least one seed per window.
func (f *CaseFlags) SpreadSeeds(cases []eval.Case, runs int) {
	if f.Flags.Changed("seeds") {
		return
	}
	windows, most := map[string]int{}, 1
	for i := range cases {
		name := cases[i].Scenario
		windows[name]++
		most = max(most, windows[name])
	}
	f.Seeds = strconv.Itoa(max(1, runs/most))
}

// WindowsOfText parses a changed text of the scenario called name and binds its windows. Errors
// name the object rather than the line, because the user has not seen the changed text.
func (f *CaseFlags) WindowsOfText(text []byte, name string) ([]eval.Case, error) {
	text = scenarios.WithoutOrigins(text)
	sc, err := scenarios.ParseAt(FileName(name), text)
	if err != nil {
		return nil, inWords(text, err)
	}
	if err := sc.Validate(); err != nil {
		return nil, err
	}
	return f.WindowsOf(sc, name)
}

// inWords rewrites errors about a changed text so that they name the object rather than the line.
func inWords(text []byte, err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range many.Unwrap() {
			all = append(all, inWords(text, e))
		}
		return errors.Join(all...)
	}
	var f *scenarios.FieldError
	if !errors.As(err, &f) {
		return err
	}
	words := edit.ObjectAt(text, f.Line)
	if f.Field != "" {
		words += fmt.Sprintf(": field %q", f.Field)
	}
	return fmt.Errorf("%s: %s", words, f.Problem)
}

// SeedsText describes seeds, and explains --seeds N if N could be mistaken for a seed.
func (f *CaseFlags) SeedsText(seeds []uint64) string {
	text := "seeds " + ranges.Text(seeds)
	if len(seeds) > 1 && ranges.Counts(f.Seeds) {
		text += fmt.Sprintf(" (--seeds %s-%[1]s is one seed)", f.Seeds)
	}
	return text
}

// ParseGates parses gates.
func ParseGates(texts []string) ([]eval.Gate, error) {
	var out []eval.Gate
	for _, text := range texts {
		g, err := eval.ParseGate(text)
		if err != nil {
			return nil,
				cli.Invalid(fmt.Errorf("--gate: %w", err), "write a gate as in --gate 'static:net_savings_pct.median >= 20'")
		}
		out = append(out, g)
	}
	return out, nil
}
