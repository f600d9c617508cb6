// Package input reads the inputs of commands from the user and from disk: scenarios, traces,
// recordings, times, seeds, windows and policies. It does not simulate.
package input

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/ranges"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// MarketFlags are the flags for the prices and the weather of a run.
type MarketFlags struct {
	SourceFlags
	Trace     string
	from      string
	intensity float64
	truth     string
	karpenter string
	start     string
	nodeFee   string

	// Flags are the flags of the command.
	Flags *pflag.FlagSet
}

// Register adds the flags.
func (m *MarketFlags) Register(flags *pflag.FlagSet) {
	m.RegisterPrices(flags)
	flags.StringVar(&m.karpenter, "karpenter-version", "",
		fmt.Sprintf("have pools of Karpenter follow the rules of `VERSION`, %v to %v (default: what the scenario states, else %v)",
			scenarios.OldestKarpenter, scenarios.NewestKarpenter, scenarios.NewestKarpenter))
	cli.Section(flags, marketSection, "karpenter-version")
}

// UnderKarpenter returns m with another version of Karpenter.
func (m MarketFlags) UnderKarpenter(version string) MarketFlags {
	m.karpenter = version
	return m
}

// RegisterPrices adds all flags except that for Karpenter's version, which is not part of the
// market.
func (m *MarketFlags) RegisterPrices(flags *pflag.FlagSet) {
	m.Flags = flags
	m.RegisterSources(flags)
	flags.StringVar(&m.Trace, "trace", "",
		"prices to replay: a trace `DIR|FILE|NAME`, where a name is that of an embedded one, "+strings.Join(trace.EmbeddedNames(), ", ")+" (default: the scenario's, else "+trace.Recorded+", which was recorded)")
	flags.StringVar(&m.from, "from", "",
		"start the first window at `TIME`, as 2023-03-01, which is 00:00 UTC, or RFC 3339 (default: the scenario's start, else after a day of warm-up where the trace has twelve weeks, else the trace's first time)")
	flags.StringVar(&m.start, "start", "",
		"start the warm-up in a `CLUSTER`: empty, in which each policy launches its first nodes, or on-demand, the cheapest on-demand packing for every policy, which measures a migration (default: the scenario's, else empty)")
	flags.Float64Var(&m.intensity, "intensity", 1,
		"multiply reclaim rates and the frequency of capacity shortages by `X`, in place of the scenario's market.intensity")
	flags.StringVar(&m.nodeFee, "node-fee", "",
		"charge `FEE` for every node on top of its price, as $15/month or 0.02/h, in place of the scenario's nodeFee")
	flags.StringVar(&m.truth, "truth", weather.Truth{}.String(),
		"draw the weather and the prices under the truth `NAME`, which no policy knows: "+strings.Join(TruthNames(),
			", ")+" (docs/market.md)")
	cli.Section(flags, marketSection, "trace", "from", "start", "intensity", "node-fee", "truth")
}

// marketSection is the heading of the flags that affect a run in any command.
const marketSection = "Prices, time and weather"

// Options returns the options for binding a scenario.
func (m *MarketFlags) Options() (scenarios.BindOptions, error) {
	var o scenarios.BindOptions
	if err := TimeFlag("from", m.from, &o.From); err != nil {
		return o, err
	}
	if m.Flags.Changed("intensity") {
		if !(m.intensity >= 0 && m.intensity <= intensityMax) {
			return o, cli.Invalid(fmt.Errorf("--intensity: %v is not in 0…%d", m.intensity, intensityMax),
				"give 0 for no reclaims, 1 for the rate of the scenario")
		}
		o.Intensity = &m.intensity
	}
	if m.start != "" {
		s, err := scenarios.ParseStartCluster(m.start)
		if err != nil {
			return o, cli.Invalid(fmt.Errorf("--%w", err), "give --start empty or --start on-demand")
		}
		o.StartCluster = &s
	}
	if m.nodeFee != "" {
		fee, err := policy.ParseFee(m.nodeFee)
		if err != nil {
			return o, cli.Invalid(fmt.Errorf("--node-fee: %w", err), "give one as $15/month or 0.02/h")
		}
		o.NodeFee = &fee
	}
	if m.karpenter != "" {
		v, err := scenarios.ParseKarpenterVersion(m.karpenter)
		if err != nil {
			return o, cli.Invalid(fmt.Errorf("--karpenter-version: %w", err), "give one as 1.14")
		}
		o.Karpenter = v
	}
	return o, nil
}

// TruthNames returns the values of --truth.
func TruthNames() []string {
	var names []string
	for _, t := range weather.Truths() {
		names = append(names, t.String())
	}
	return names
}

// intensityMax is the maximum of --intensity. With a thousand times the reclaims, no node runs for
// an hour.
const intensityMax = 1000

// TimeFlag parses the value of a flag for a time. If text is empty, it does not change at.
func TimeFlag(flag, text string, at *policy.Time) error {
	if text == "" {
		return nil
	}
	t, err := ParseTime(text)
	if err != nil {
		return cli.Invalid(fmt.Errorf("--%s: %w", flag, err), "give a date as 2023-03-01 or a time as 2023-03-01T00:00:00Z")
	}
	*at = t
	return nil
}

// ParseTime parses a date, which means 00:00 UTC, or a time in RFC 3339.
func ParseTime(s string) (policy.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil {
			if t.UnixMilli() <= 0 {
				return 0, fmt.Errorf("%q is before 1970", s)
			}
			return policy.TimeOf(t), nil
		}
	}
	if _, err := time.Parse("2006-01-02T15:04:05", strings.Replace(s, " ", "T", 1)); err == nil {
		return 0, fmt.Errorf("%q has no zone: end it with Z for UTC, or with an offset as +02:00", s)
	}
	return 0, fmt.Errorf("%q is neither a date nor a time", s)
}

// seedsMax is the maximum number of seeds, so that a mistyped number does not run for days.
const seedsMax = 1_000_000

// ParseSeeds parses a list of seeds in the format of [ranges.Numbers].
func ParseSeeds(s string) ([]uint64, error) { return ranges.Numbers(s, seedsMax) }

// ParseScenario parses and validates a scenario. name is its name in errors.
func ParseScenario(name string, text []byte) (*scenarios.Scenario, error) {
	sc, err := scenarios.ParseAt(FileName(name), text)
	if err == nil {
		err = sc.Validate()
	}
	if err != nil {
		return nil, cli.Invalid(err, scenarioAdvice(name))
	}
	return sc, nil
}

func scenarioAdvice(name string) string {
	return "fix the file and check it with `spotter scenario validate " + name + "`"
}

// Bind binds sc to the window with the given number. Windows are contiguous and count from 0.
func (m *MarketFlags) Bind(sc *scenarios.Scenario, opened Traces, window int) (*scenarios.BoundScenario, error) {
	return m.BindAt(sc, opened, WindowRange{}, time.Duration(window)*sc.Duration)
}

// BindAt binds sc to the window that starts the duration after later than the first one of r.
func (m *MarketFlags) BindAt(sc *scenarios.Scenario, opened Traces, r WindowRange,
	after time.Duration) (*scenarios.BoundScenario, error) {
	path := m.Trace
	if path == "" {
		path = sc.Trace
	}
	from, err := opened.open(path)
	if err != nil {
		return nil, err
	}
	o, err := m.Options()
	if err != nil {
		return nil, err
	}
	truth, err := weather.TruthNamed(m.truth)
	if err != nil {
		return nil, cli.Invalid(fmt.Errorf("--truth: %w%s", err, cli.Meant(m.truth, TruthNames())),
			"give one of those; `spotter eval --stress` compares under all of them")
	}
	o.From = r.begin(o.From, sc, from).Add(after)
	tr, err := from.part(sc, o.From)
	if err != nil {
		return nil, err
	}
	w, err := scenarios.Bind(sc, tr, o)
	if errors.Is(err, scenarios.ErrStart) {
		return nil, cli.Invalid(err, "leave --start out, or spec.nodes")
	}
	if err != nil {
		return nil,
			cli.Invalid(err,
				"see what the trace holds with `spotter trace info"+Argument(path)+"`, and choose with --from, --windows and --trace")
	}
	if !trace.IsEmbedded(path) {
		w.Trace.Name = path
	}
	w.Trace.Traffic = from.traffic
	return w.Under(truth), nil
}

// Argument returns path as an additional argument of a command, empty if path is empty.
func Argument(path string) string {
	if path == "" {
		return ""
	}
	return " " + path
}

// Command returns the command that repeats a run.
func (m *MarketFlags) Command(j eval.Job) string {
	words := []string{
		"spotter", "sim", j.Scenario, "--policy", j.Policy, "--seed", fmt.Sprint(j.Seed),
		"--from", j.Bound.Start.Std().Format(time.RFC3339),
	}
	if m.Recursive {
		words = append(words, "--recursive")
	}
	if m.Trace != "" {
		words = append(words, "--trace", m.Trace)
	}
	if m.Flags.Changed("intensity") {
		words = append(words, "--intensity", fmt.Sprint(m.intensity))
	}
	if m.start != "" {
		words = append(words, "--start", m.start)
	}
	if m.nodeFee != "" {
		words = append(words, "--node-fee", m.nodeFee)
	}
	if m.karpenter != "" {
		words = append(words, "--karpenter-version", m.karpenter)
	}
	if t := j.Bound.Truth; !t.Modelled() {
		words = append(words, "--truth", t.String())
	}
	return cli.Shell(words)
}

// DefaultScenario is the scenario that eval runs if the user names none.
const DefaultScenario = "web-week"

// CompleteScenarios completes the names of scenarios.
func CompleteScenarios(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return slices.Concat(scenarios.Names(), scenarios.Hunted()), cobra.ShellCompDirectiveDefault
}

// ScenarioAdvice explains what to do about a scenario that is not found.
const ScenarioAdvice = "give a file, or one of the names that `spotter scenario list` prints"
