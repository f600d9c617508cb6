package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/progress"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/shard"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/objects"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// onKubernetes is the only value of --on.
const onKubernetes = "kubernetes"

// clusterFlags configure how a comparison runs in parts in a cluster.
type clusterFlags struct {
	access.Cluster
	on, attach, namespace   string
	queue, image, templated string
	parts                   string
	shards, parallelism     int
	keep                    bool
}

// sharesDefault is the default number of parts, large enough that an eviction loses little work.
const sharesDefault = 40

func (c *clusterFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&c.on, "on", "", "make the parts in a cluster, `kubernetes`, as one Indexed Job, follow it and merge")
	flags.StringVar(&c.attach, "attach", "", "follow the comparison `NAME` that --on kubernetes started, and merge")
	flags.StringVar(&c.parts, "parts", "", "where the pods write their parts, `s3://BUCKET/PREFIX`")
	flags.IntVar(&c.shards, "shards", sharesDefault, "number `N` of parts, at most one per run")
	flags.IntVar(&c.parallelism, "parallelism", 10, "how many pods run at once, `N`")
	flags.StringVar(&c.image, "image", "", "`IMAGE` of the pods (default: that of this version)")
	flags.StringVar(&c.queue, "queue", "", "let Kueue start the Job, from the LocalQueue `NAME`")
	flags.StringVar(&c.templated, "pod-template", "",
		"merge a PodTemplateSpec in `FILE` into that of the Job, strategically: tolerations, nodeSelector, service account, resources, environment; its container is called "+containerName)
	flags.BoolVar(&c.keep, "keep", false, "keep the Job and the parts after merging")
	flags.StringVarP(&c.namespace, "namespace", "n", "default", "`NAMESPACE` of the Job")
	c.Register(flags)
	cli.Section(flags, "In a cluster", "on", "attach", "parts", "shards", "parallelism", "image", "queue",
		"pod-template", "keep", "namespace", "kubeconfig", "context")
}

// A remote is a comparison whose parts run in a cluster. It contains everything needed to follow
// the comparison, and is stored in a ConfigMap that owns its Jobs.
type remote struct {
	Name   string      `json:"name"`
	Parts  string      `json:"parts"` // folder of this comparison
	Shards int         `json:"shards"`
	Cells  int         `json:"cells"`
	Plan   string      `json:"plan,omitempty"` // its file, if it is too large for the ConfigMap
	Build  shard.Build `json:"build"`
	Job    []byte      `json:"job"` // the JSON of the Job, copied for every round

	plan shard.Plan
}

// part returns the path of part i.
func (r *remote) part(i int) string {
	return objects.Join(r.Parts, partName(shard.Share{I: i, N: r.Shards}))
}

// runOn runs a comparison in a cluster.
func runOn(ctx context.Context, p *cli.Program, f *evalFlags, args []string) error {
	if f.cluster.on != onKubernetes && f.cluster.on != "" {
		return cli.Invalid(fmt.Errorf("--on: %q is unknown", f.cluster.on), "give --on kubernetes")
	}
	if err := f.checkOn(p, args); err != nil {
		return err
	}
	cfg, err := f.cluster.Config(p.Version)
	if err != nil {
		return err
	}
	c, err := access.Client(cfg)
	if err != nil {
		return err
	}
	shown := progress.Show(ctx, p, "beginning")
	defer func() { shown.Close(p) }()
	run := &remoteRun{client: c, store: &objects.Store{}, namespace: f.cluster.namespace, shown: shown, p: p}
	if f.cluster.attach != "" {
		err = run.open(ctx, f.cluster.attach)
	} else {
		err = run.begin(ctx, p, f, args)
	}
	if err != nil {
		return refused(err)
	}
	parts, err := run.follow(ctx)
	if ctx.Err() != nil {
		return &cli.StoppedError{Err: fmt.Errorf("stopped while %s keeps running in the cluster: %w", run.Name,
			context.Cause(ctx)),
			Next: "`spotter eval --attach " + run.Name + "`, or the same call again, follows it; `kubectl delete configmap " +
				run.Name + "` ends it"}
	}
	if err != nil {
		return err
	}
	shown.Close(p)
	shown = nil
	result := f.mergeParts(ctx, p, parts)
	if f.cluster.keep || errors.As(result, new(*cli.InvalidError)) {
		return result
	}
	return errors.Join(result, run.clean(ctx))
}

// checkOn returns an error for flags that cannot be combined with a run in a cluster.
func (f *evalFlags) checkOn(p *cli.Program, args []string) error {
	for _, name := range []string{"shard", "plan", "reuse", "compare", "compare-scenarios"} {
		if f.given(name) {
			return cli.Invalid(fmt.Errorf("--on: it does not go with --%s", name), "leave one of them out")
		}
	}
	c := &f.cluster
	switch words := f.words(args); {
	case c.attach != "" && len(words) > 0:
		return cli.Invalid(fmt.Errorf("--attach: %s already defines what is compared, and so does the call: %s", c.attach,
			cli.Shell(words)), "leave that out, or --attach")
	case c.attach == "" && !objects.Remote(c.parts):
		return cli.Invalid(fmt.Errorf("--parts: %q is not of the form s3://BUCKET/PREFIX", c.parts),
			"name a bucket that this machine and the pods can write to, as --parts s3://evaluations/main")
	case c.shards < 1 || c.shards > 10_000:
		return cli.Invalid(fmt.Errorf("--shards: %d is not in 1…10000", c.shards), "give the number of parts")
	case c.parallelism < 1:
		return cli.Invalid(fmt.Errorf("--parallelism: %d is not positive", c.parallelism), "give the number of pods at once")
	}
	_, err := f.checkOutputs(p)
	return err
}

// A remoteRun follows a remote comparison.
type remoteRun struct {
	remote
	client    client.Client
	store     *objects.Store
	namespace string
	shown     *progress.Progress
	p         *cli.Program
}

// begin creates the objects of a comparison in the cluster, or finds them. Its name is derived from
// its content, so the same call continues it.
func (r *remoteRun) begin(ctx context.Context, p *cli.Program, f *evalFlags, args []string) error {
	cfg, err := evalConfig(ctx, p, f, nil, args)
	if err != nil {
		return err
	}
	if err := checkThere(runner.New(), cfg); err != nil {
		return err
	}
	if r.Build, err = buildOf(ctx, p); err != nil {
		return err
	}
	for _, c := range f.configs(cfg) {
		r.Cells += len(c.Cases) * len(c.Seeds) * (len(c.Compared()) + 1)
	}
	r.plan, r.Shards = f.planOf(args), min(f.cluster.shards, r.Cells)
	id := (&shard.Plan{Args: []string{r.plan.Digest(), r.Build.String(), f.cluster.parts,
		fmt.Sprint(r.Shards)}}).Digest()[:12]
	r.Name = "spotter-eval-" + id
	r.Parts = objects.Join(f.cluster.parts, r.Name)
	if r.Job, err = f.cluster.job(p, &r.remote); err != nil {
		return err
	}
	return r.create(ctx)
}

// checkThere returns an error if the comparison needs local files, which the pods do not have.
func checkThere(r *runner.Runner, cfg *eval.Config) error {
	for _, k := range cfg.Cases {
		if name := k.Bound.Trace.Name; !trace.IsEmbedded(name) && !objects.Remote(name) && !filepath.IsAbs(name) {
			return cli.Invalid(fmt.Errorf("--trace: %s is a file of this machine", name),
				"put the trace into a bucket, or into a volume that --pod-template mounts, and name it as s3://BUCKET/PREFIX or by its whole path, the same here and there")
		}
		for _, policy := range cfg.Compared() {
			switch sum, err := r.FilesOf(policy, k.Bound); {
			case err != nil:
				return cli.Invalid(err, "name an existing policy")
			case sum != "" && !strings.Contains(policy, "builtin"):
				return cli.Invalid(fmt.Errorf("--policies: %s names a file of this machine", policy),
					"compare it here with --shard, or use a bundle that is built in")
			}
		}
	}
	return nil
}

// A partial is the valid parts of a comparison so far, by number.
type partial map[int]*shard.Part

// look reads new parts. It deletes an invalid part, so that it is computed again.
func (r *remoteRun) look(ctx context.Context, have partial) error {
	all, err := r.store.List(ctx, r.Parts)
	if err != nil {
		return err
	}
	for i := 1; i <= r.Shards; i++ {
		name := r.part(i)
		at := slices.IndexFunc(all, func(x objects.Info) bool { return x.Name == name })
		if at < 0 || have[i] != nil {
			continue
		}
		data, err := r.store.ReadFile(ctx, name)
		if err != nil {
			return err
		}
		part, err := shard.Read(name, data)
		if err == nil && (part.Build != r.Build || part.Share != shard.Share{I: i, N: r.Shards} ||
			part.Plan.Digest() != r.plan.Digest() || len(part.Cells) != part.Jobs) {
			err = fmt.Errorf("%s: it belongs to another comparison or build, or is incomplete", name)
		}
		if err != nil {
			fmt.Fprintf(r.p.Stderr, "warning: %v; it is made again\n", err)
			if err := r.store.Delete(ctx, name); err != nil {
				return err
			}
			continue
		}
		have[i] = part
	}
	return nil
}

func (h partial) cells() (n int) {
	for _, part := range h {
		n += len(part.Cells)
	}
	return n
}

// lookEvery is the interval at which the Job and the parts are checked.
const lookEvery = 2 * time.Second

// roundsMax is the maximum number of rounds in which missing or damaged parts are computed again.
const roundsMax = 5

// follow waits for all parts and starts Jobs for missing and damaged ones. It returns them in
// order.
func (r *remoteRun) follow(ctx context.Context) ([]*shard.Part, error) {
	have := partial{}
	watched := "" // the Job that was seen running: the cause of an older failure may be fixed
	for round := 0; ; {
		if err := r.look(ctx, have); err != nil {
			return nil, err
		}
		r.shown.Send(eval.Progress{Step: eval.StepRuns, Done: have.cells(), Total: r.Cells})
		if len(have) == r.Shards {
			break
		}
		job, err := r.newest(ctx)
		if err != nil {
			return nil, err
		}
		if job != nil && !ended(job) {
			watched = job.Name
			if err := wait(ctx, lookEvery); err != nil {
				return nil, err
			}
			continue
		}
		if err := r.look(ctx, have); err != nil { // its last parts may be newer than the first look
			return nil, err
		}
		missing := r.missing(have)
		if job != nil && job.Name == watched && len(missing) > 0 {
			if why := r.failure(ctx, job); why != "" {
				return nil, fmt.Errorf("%s: %s", job.Name, why)
			}
		}
		if len(missing) == 0 {
			continue
		}
		if round++; round > roundsMax {
			return nil, fmt.Errorf("%s: %d parts are still damaged or missing after %d rounds", r.Name, len(missing), roundsMax)
		}
		if watched, err = r.start(ctx, job, missing); err != nil {
			return nil, err
		}
	}
	var parts []*shard.Part
	for i := 1; i <= r.Shards; i++ {
		parts = append(parts, have[i])
	}
	return parts, nil
}

// missing returns the numbers of the parts that have does not contain.
func (r *remoteRun) missing(have partial) (missing []int) {
	for i := 1; i <= r.Shards; i++ {
		if have[i] == nil {
			missing = append(missing, i)
		}
	}
	return missing
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// clean removes the ConfigMap of the comparison with its Jobs, and the parts.
func (r *remoteRun) clean(ctx context.Context) error {
	if err := r.client.Delete(ctx, r.configMap(), client.PropagationPolicy("Background")); err != nil &&
		!apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting ConfigMap %s: %w", r.Name, err)
	}
	all, err := r.store.List(ctx, r.Parts)
	for _, x := range all {
		err = errors.Join(err, r.store.Delete(ctx, x.Name))
	}
	return err
}

// planMax is the maximum size in bytes of a plan in a ConfigMap. The API server accepts 1 MiB for
// the whole object.
const planMax = 900 << 10

// planText returns the plan as JSON. A plan that is too large for a ConfigMap is stored in the
// bucket, and planText returns an empty string.
func (r *remoteRun) planText(ctx context.Context) (string, error) {
	text, err := json.Marshal(&r.plan)
	if err != nil {
		return "", err
	}
	if len(text) <= planMax {
		return string(text), nil
	}
	r.Plan = objects.Join(r.Parts, "plan.json")
	return "", r.store.Create(ctx, r.Plan, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// readTemplate returns the content of the file of --pod-template, or nil without the flag.
func (c *clusterFlags) readTemplate() ([]byte, error) {
	if c.templated == "" {
		return nil, nil
	}
	return os.ReadFile(c.templated)
}
