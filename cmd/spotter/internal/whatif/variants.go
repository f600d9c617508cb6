package whatif

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/internal/ranges"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/edit"
)

// An alternative is one value of a change.
type alternative struct {
	short, full string
	apply       func(*draft) error
}

// A draft is a variant that is being created.
type draft struct {
	file              *edit.File
	policy, karpenter string

	// set are the changes of settings, as written.
	set []string
}

// variantsMax is the maximum number of variants of a call.
const variantsMax = 1000

// sweepMax is the maximum number of values of a sweep that fit in a table and a picture.
const sweepMax = 35

// parseSweep parses PATH=LIST into the path and its values.
func parseSweep(text string) (path string, values []string, err error) {
	path, list, err := edit.Split(text)
	if err != nil {
		return "", nil, err
	}
	if values, err = ranges.Values(list); err == nil && (len(values) < 2 || len(values) > sweepMax) {
		err = fmt.Errorf("%q is not a range or a list of 2 to %d values", list, sweepMax)
	}
	return path, values, err
}

// alternatives returns the values of a change.
func (c *call) alternatives(x change) ([]alternative, error) {
	value := x.value
	switch x.flag {
	case flagSet:
		return []alternative{setting(value)}, nil
	case flagSweep:
		path, values, err := parseSweep(value)
		var out []alternative
		for _, v := range values {
			out = append(out, setting(path+"="+v))
		}
		c.sweep = edit.Short(path)
		return out, err
	case flagPools:
		return []alternative{{"nodepools " + value, "the NodePools, node classes and CapacityPools in " + value,
			func(d *draft) error {
				pools, err := readPools(value)
				if err != nil {
					return err
				}
				if err := d.file.ReplacePools(pools, c.prune); err != nil {
					return fmt.Errorf("%s: %w", value, err)
				}
				if c.before != nil {
					d.file.RemovePools(c.before, pools)
				}
				return nil
			}}}, nil
	case flagKarpenter:
		return splitAlternatives(value, func(v string) (alternative, error) {
			_, err := scenarios.ParseKarpenterVersion(v)
			return alternative{"Karpenter " + v, "the rules of Karpenter " + v,
				func(d *draft) error { d.karpenter = v; return nil }}, err
		})
	case flagPolicy:
		specs, err := input.ParsePolicies(value)
		var out []alternative
		for _, spec := range specs {
			out = append(out, alternative{spec, "the policy " + spec + " in place of " + eval.CaptureBaseline,
				func(d *draft) error { d.policy = spec; return nil }})
		}
		return out, err
	case flagPlan:
		return splitAlternatives(value, c.plan)
	}
	return []alternative{{"Spot allowed", "every pool may buy Spot in addition to on demand", allowSpot}}, nil
}

func splitAlternatives(list string, of func(string) (alternative, error)) ([]alternative, error) {
	var out []alternative
	for _, v := range strings.Split(list, ",") {
		a, err := of(strings.TrimSpace(v))
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

func setting(text string) alternative {
	return alternative{edit.Short(text), text, func(d *draft) error {
		d.set = append(d.set, text)
		return d.file.Set(text)
	}}
}

func allowSpot(d *draft) error {
	n, err := d.file.AllowSpot()
	if err == nil && n == 0 {
		err = errors.New("every pool may buy Spot already")
	}
	return err
}

// plan returns the alternative for a savings plan that covers a percentage of on-demand costs.
func (c *call) plan(text string) (alternative, error) {
	percent, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || !(percent > 0 && percent <= 100) {
		return alternative{}, fmt.Errorf("%q is not a percentage above 0 and at most 100", text)
	}
	hourly, err := c.onDemandHourly()
	if err != nil {
		return alternative{}, err
	}
	covered := hourly * percent / 100
	spend := covered * (1 - c.discount)
	if spend < 0.005 {
		return alternative{}, fmt.Errorf("%s would be %s an hour: the scenario as it is buys too little on demand",
			figures.Percent(percent, figures.Few), figures.Price(spend))
	}
	spend, _ = strconv.ParseFloat(strconv.FormatFloat(spend, 'f', 3, 64), 64)
	name := figures.Percent(percent, figures.Few)
	return alternative{
		short: "savings plan " + name,
		full: fmt.Sprintf("a savings plan of %s an hour at %s off, which covers %s of what %s buys on demand",
			figures.Price(spend), figures.Share(c.discount, figures.Few), name, eval.CaptureBaseline),
		apply: func(d *draft) error { return d.file.Commit("whatif", spend, c.discount) },
	}, nil
}

// readPools reads the manifests of a file or a folder.
func readPools(path string) (*edit.File, error) {
	all := &edit.File{}
	err := filepath.WalkDir(path, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if ext := filepath.Ext(file); file != path && !slices.Contains([]string{".yaml", ".yml", ".json"}, ext) {
			return nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		f, err := edit.Read(file, data)
		if err == nil {
			all.Add(f)
		}
		return err
	})
	return all, err
}

// variants creates the variants for groups of changes.
func (c *call) variants(ctx context.Context, groups [][]change) ([]eval.Variant, error) {
	var out []eval.Variant
	var drafts [][]alternative
	for _, group := range groups {
		var values [][]alternative
		for _, x := range group {
			of, err := c.alternatives(x)
			if err != nil {
				return nil, cli.Invalid(fmt.Errorf("--%s: %w", x.flag, err), "run `spotter whatif --help`")
			}
			values = append(values, of)
		}
		made := ranges.Product(values, variantsMax)
		drafts = append(drafts, made...)
		if err := c.nameSweep(group, made); err != nil {
			return nil, err
		}
	}
	if len(drafts) > variantsMax {
		return nil, cli.Invalid(fmt.Errorf("these are more than %d variants", variantsMax), "give fewer values")
	}
	for _, d := range drafts {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("making variants: %w", err)
		}
		v, err := c.variant(d)
		if err != nil {
			return nil, cli.Invalid(fmt.Errorf("%s: %w", joined(d, false), err), "fix that change; nothing was run")
		}
		out = append(out, v)
	}
	return out, named(out)
}

// nameSweep includes the changes before the swept setting in the name of the sweep. They must be
// the same in all variants.
func (c *call) nameSweep(group []change, made [][]alternative) error {
	i := slices.IndexFunc(group, func(x change) bool { return x.flag == flagSweep })
	if i < 0 {
		return nil
	}
	for _, d := range made {
		for k := range d {
			if k != i && d[k].short != made[0][k].short {
				return cli.Invalid(fmt.Errorf("--%s: it has several values in addition to those of --sweep", group[k].flag),
					"give one of them, and the others to further calls")
			}
		}
	}
	if i > 0 {
		c.sweep = joined(made[0][:i], false) + " with " + c.sweep
	}
	return nil
}

// joined returns the changes of a variant as text.
func joined(changes []alternative, full bool) string {
	var parts []string
	for _, x := range changes {
		if full {
			parts = append(parts, x.full)
		} else {
			parts = append(parts, x.short)
		}
	}
	return strings.Join(parts, " with ")
}

// named sets the full name of variants whose short names are equal. It returns an error if two
// variants are equal.
func named(all []eval.Variant) error {
	count := map[string]int{eval.CaptureBaseline: 1}
	for i := range all {
		count[all[i].Name]++
	}
	seen := map[string]bool{}
	for i := range all {
		full := strings.Join(all[i].Changes, " with ")
		if count[all[i].Name] > 1 {
			all[i].Name = full
		}
		if seen[full] {
			return cli.Invalid(fmt.Errorf("%s is given twice", full), "give each variant once")
		}
		seen[full] = true
	}
	return nil
}

// variant creates a variant from its changes.
func (c *call) variant(changes []alternative) (eval.Variant, error) {
	v := eval.Variant{Name: joined(changes, false), Policy: eval.CaptureBaseline}
	file, err := edit.Read(c.scenario, c.text)
	if err != nil {
		return v, err
	}
	d := draft{file: file, policy: v.Policy}
	for _, x := range changes {
		v.Changes = append(v.Changes, x.full)
		if err := x.apply(&d); err != nil {
			return v, err
		}
	}
	v.Policy = d.policy
	if v.Cases, err = c.bind(&d); err != nil {
		return v, err
	}
	if err := c.noteOverridden(&d); err != nil {
		return v, err
	}
	return v, v.Alike(c.cases)
}

// noteOverridden adds a note for replicas that were set and that a schedule or an autoscaler
// overrides.
func (c *call) noteOverridden(d *draft) error {
	for _, change := range d.set {
		kind, namespace, name, path, err := d.file.Setting(change)
		if err != nil || path != "spec.replicas" {
			continue // another change removed the object, or it is another setting
		}
		text, err := d.file.Text()
		if err != nil {
			return err
		}
		sc, err := scenarios.ParseAt(input.FileName(c.scenario), scenarios.WithoutOrigins(text))
		if err != nil {
			return err
		}
		if by := sc.ReplicasBy(kind, namespace, name); by != "" {
			c.notes = append(c.notes,
				fmt.Sprintf("%s has no effect after the start: %s sets the replicas of %s %s/%s; change that, or remove it with "+
					"=null", change, by, kind, namespace, name))
		}
	}
	return nil
}

// bind parses the changed scenario and binds its windows.
func (c *call) bind(d *draft) ([]eval.Case, error) {
	text, err := d.file.Text()
	if err != nil {
		return nil, err
	}
	flags := c.CaseFlags
	if d.karpenter != "" {
		flags.MarketFlags = flags.UnderKarpenter(d.karpenter)
	}
	return flags.WindowsOfText(text, c.scenario)
}
