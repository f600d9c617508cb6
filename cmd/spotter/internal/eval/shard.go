package eval

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/shard"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/objects"
)

const (
	partAdvice  = "give parts that `spotter eval --shard I/N --out FILE` wrote"
	shardAdvice = "give --shard 1/3 for the first of three parts"
)

// indexVariable is the environment variable with the completion index of a pod of an Indexed Job,
// starting at 0.
const indexVariable = "JOB_COMPLETION_INDEX"

// share returns the part of --shard, I/N. In a pod of an Indexed Job it is N or a list of parts,
// such as 3,17/N, from which the pod takes the one with its index.
func (f *evalFlags) share() (shard.Share, error) {
	text := f.shard
	list, n, _ := strings.Cut(text, "/")
	if _, err := strconv.Atoi(text); err == nil || strings.Contains(list, ",") || os.Getenv(indexVariable) != "" {
		i, err := strconv.Atoi(os.Getenv(indexVariable))
		parts := strings.Split(list, ",")
		switch {
		case err != nil:
			return shard.Share{}, cli.Invalid(fmt.Errorf("--shard: %s does not say which part: %s is %q", text, indexVariable,
				os.Getenv(indexVariable)), shardAdvice)
		case n == "":
			text = fmt.Sprintf("%d/%s", i+1, text)
		case len(parts) > 1 && i < len(parts):
			text = parts[i] + "/" + n
		}
	}
	s, err := shard.ParseShare(text)
	if err != nil {
		return s, cli.Invalid(fmt.Errorf("--shard: %w", err), shardAdvice)
	}
	return s, nil
}

// checkShard returns the file for the part, from --out. In a folder, which ends with a slash, the
// name of the file is derived from share. It returns an error for flags that a part does not
// support.
func (f *evalFlags) checkShard(share shard.Share) (out string, err error) {
	if f.stress {
		if err := f.checkStress(nil); err != nil {
			return "", err
		}
	}
	for _, name := range []string{"compare", "compare-scenarios", "report"} {
		if f.given(name) {
			return "", cli.Invalid(fmt.Errorf("--shard: it does not go with --%s", name),
				"leave it out; `spotter eval merge` writes every result, and `spotter eval compare` compares two")
		}
	}
	if f.given("format") {
		return "", cli.Invalid(fmt.Errorf("--shard: a part has a format of its own, and --format is %s", f.format),
			"leave --format out")
	}
	names := f.out
	if len(names) != 1 || names[0] == "" || names[0] == terminal {
		return "", cli.Invalid(fmt.Errorf("--shard: %q is not the name of one file for the part", strings.Join(names, " ")),
			"give --out part-1.parquet or s3://BUCKET/KEY")
	}
	out = names[0]
	if strings.HasSuffix(out, "/") {
		out = objects.Join(out, partName(share))
	}
	if err := cli.CheckEnding("--out", out, ".parquet"); err != nil {
		return "", err
	}
	if !objects.Remote(out) {
		return out, cli.CheckOut("--out", out)
	}
	return out, nil
}

// partName returns the file name of a part in a folder.
func partName(s shard.Share) string {
	return fmt.Sprintf("part-%05d-of-%05d.parquet", s.I, s.N)
}

// A known is the state of a comparison: the cells that are already done and how to run the rest.
type known struct {
	configs []eval.Config // one, or one for every truth under --stress
	build   shard.Build
	keys    *shard.Keys
	jobs    *shard.Jobs
	cells   shard.Known
	share   int // number of jobs in the share
	run     eval.Runner
}

// configs returns the comparisons of a call: one, or one for every truth under --stress.
func (f *evalFlags) configs(cfg *eval.Config) []eval.Config {
	if f.stress {
		return eval.Truths(cfg)
	}
	return []eval.Config{*cfg}
}

// known determines which runs of cfg are already done, from the parts that are merged or that
// --reuse names, and sets them and the share in cfg. Without any of these flags it does nothing.
func (f *evalFlags) known(ctx context.Context, p *cli.Program, r *runner.Runner, cfg *eval.Config,
	share shard.Share) (*known, error) {
	k := &known{configs: f.configs(cfg), run: f.runner(r)}
	if f.merged == nil && f.reuse == nil && f.shard == "" {
		return k, nil
	}
	var err error
	if f.merged != nil {
		k.build = f.merged[0].Build // [shard.Check] ensures that it is this build
	} else if k.build, err = buildOf(ctx, p); err != nil {
		return nil, err
	}
	k.keys = &shard.Keys{Build: k.build, Files: r.FilesOf}
	if k.jobs, err = shard.JobsOf(k.configs, k.keys); err != nil {
		return nil, err
	}
	parts := f.merged
	if parts == nil {
		if parts, err = readParts(ctx, &objects.Store{}, f.reuse); err != nil {
			return nil, err
		}
	}
	k.cells = shard.KnownOf(parts, f.merged == nil)
	if f.merged != nil {
		if err := k.cells.Cover(k.jobs, k.configs, k.keys, parts); err != nil {
			return nil, cli.Invalid(err, partAdvice+" of these inputs, or run that part again")
		}
	}
	cfg.Known, k.run = k.cells.Bounds(k.jobs), k.cells.Runner(k.jobs, k.run)
	k.share, cfg.Mine = k.jobs.Of(share)
	k.configs = f.configs(cfg)
	return k, nil
}

// remaining returns the number of runs that are still to be done.
func (k *known) remaining() (runs int) {
	for i := range k.configs {
		c := k.configs[i].Complete()
		for j := range c.Jobs {
			if (k.jobs == nil || k.cells[k.jobs.Key(j)] == nil) && (c.Mine == nil || c.Mine(j)) {
				runs++
			}
		}
	}
	return runs
}

// buildOf returns the version and the engine of this program.
func buildOf(ctx context.Context, p *cli.Program) (shard.Build, error) {
	engine, err := runner.New().Engine(ctx, p.Version)
	return shard.Build{Version: p.Version, Engine: engine}, err
}

// readParts reads parts from files, objects, folders and prefixes.
func readParts(ctx context.Context, store *objects.Store, names []string) ([]*shard.Part, error) {
	var parts []*shard.Part
	for _, name := range names {
		files := []string{name}
		if !strings.HasSuffix(name, ".parquet") {
			all, err := store.List(ctx, name)
			if err != nil {
				return nil, cli.Invalid(err, partAdvice)
			}
			files = nil
			for _, x := range all {
				if strings.HasSuffix(x.Name, ".parquet") {
					files = append(files, x.Name)
				}
			}
		}
		for _, file := range files {
			data, err := store.ReadFile(ctx, file)
			if err != nil {
				return nil, cli.Invalid(err, partAdvice)
			}
			part, err := shard.Read(file, data)
			if err != nil {
				return nil, cli.Invalid(err, partAdvice)
			}
			parts = append(parts, part)
		}
	}
	return parts, nil
}

// runShard runs and writes the part of a comparison that --shard selects.
func runShard(ctx context.Context, p *cli.Program, f *evalFlags, args []string) error {
	share, err := f.share()
	if err != nil {
		return err
	}
	out, err := f.checkShard(share)
	if err != nil {
		return err
	}
	part, err := f.doShare(ctx, p, args, share)
	if err != nil {
		return refused(err)
	}
	store := &objects.Store{}
	if err := store.Create(context.WithoutCancel(ctx), out, func(w io.Writer) error {
		return shard.Write(w,
			part)
	}); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	fmt.Fprintf(p.Stderr, "part %v written to %s\n", share, out)
	if n := len(part.Cells); n < part.Jobs {
		return &cli.StoppedError{Err: fmt.Errorf("stopped after %d of %d cells", n, part.Jobs),
			Next: "what is finished was written; the same call with --reuse " + cli.Shell([]string{out}) + " does the rest"}
	}
	return nil
}

// doShare runs a share and returns the part with the finished cells.
func (f *evalFlags) doShare(ctx context.Context, p *cli.Program, args []string, share shard.Share) (*shard.Part,
	error) {
	k, err := f.start(ctx, p, args, share)
	if err != nil {
		return nil, err
	}
	defer func() { k.shown.Close(p) }()
	var done []*eval.Done
	for d, err := range eval.Do(ctx, k.configs, k.run) {
		if err != nil {
			return nil, err
		}
		done = append(done, d)
	}
	p.Warn(map[string]bool{}, k.runner.Unanswered())
	head := shard.Head{Plan: f.planOf(args), Share: share, Build: k.build, Jobs: k.share}
	part, err := shard.Collect(head, done, k.jobs, k.keys, k.cfg.Mine)
	if broke := broken(part); err == nil && broke != nil {
		fmt.Fprintf(p.Stderr, "warning: %s in %s broke under seed %d, and maybe others: %s\n", broke.Policy, broke.Scenario,
			broke.Seed, broke.Err)
	}
	return part, err
}

// broken returns the first cell whose run broke, or nil.
func broken(part *shard.Part) *shard.Cell {
	if part == nil {
		return nil
	}
	if i := slices.IndexFunc(part.Cells, func(c shard.Cell) bool { return c.Err != "" }); i >= 0 {
		return &part.Cells[i]
	}
	return nil
}

// openPlan returns the flags and arguments of the plan that --plan names.
func (f *evalFlags) openPlan(ctx context.Context, args []string) (*evalFlags, []string, error) {
	if words := f.words(args); len(words) > 0 {
		return nil, nil, cli.Invalid(fmt.Errorf("--plan: the call says as well what is compared: %s", cli.Shell(words)),
			"leave that out, or --plan")
	}
	data, err := (&objects.Store{}).ReadFile(ctx, f.plan)
	if err != nil {
		return nil, nil, cli.Invalid(fmt.Errorf("--plan: %w", err), "give a file that can be read")
	}
	plan, err := readPlan(f.plan, data)
	if err != nil {
		return nil, nil, err
	}
	return f.planned(plan)
}

// mergeCommand returns the command that merges parts.
func mergeCommand(p *cli.Program) *cobra.Command {
	var f evalFlags
	c := &cobra.Command{
		Use:   "merge PART…",
		Short: "Merge the parts of a comparison that --shard wrote",
		Long: "merge reads the parts of a comparison, which `spotter eval --shard I/N` wrote\n" +
			"anywhere, and writes what one call of eval writes, byte for byte, with its gates.\n" +
			"A PART is a file, a folder of them, or s3://BUCKET/PREFIX. Nothing is run. It\n" +
			"needs the build and the traces that the parts were made with; the scenarios are in\n" +
			"the parts. A part that is damaged, missing, given twice, unfinished, or of another\n" +
			"plan, build or input is refused by name.\n\n" +
			"Exit code: 0 good, 1 a gate failed, 2 the call, a part or an input is wrong, 3 a\n" +
			"run broke.",
		Example: "  spotter eval merge parts/*.parquet\n" +
			"  spotter eval merge s3://bucket/parts --out results.parquet --report report.html",
		Args: cli.Arguments(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return merge(c.Context(), p, &f, args) },
	}
	f.Flags = c.Flags()
	f.registerResult(c.Flags())
	return c
}

func merge(ctx context.Context, p *cli.Program, f *evalFlags, names []string) error {
	parts, err := readParts(ctx, &objects.Store{}, names)
	if err != nil {
		return err
	}
	return f.mergeParts(ctx, p, parts)
}

// mergeParts merges parts and writes the comparison.
func (f *evalFlags) mergeParts(ctx context.Context, p *cli.Program, parts []*shard.Part) error {
	build, err := buildOf(ctx, p)
	if err != nil {
		return err
	}
	plan, err := shard.Check(parts, build)
	if err != nil {
		return cli.Invalid(err, partAdvice+" of one plan and by this build, each once")
	}
	f.merged = parts
	g, args, err := f.planned(plan)
	if err != nil {
		return err
	}
	return compareAndWrite(ctx, p, g, args)
}
