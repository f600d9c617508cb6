package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/internal/bundles"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/cluster"
	livemarket "github.com/spotter-dev/spotter/live/market"
	"github.com/spotter-dev/spotter/models/onnx"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// The modes whose rights are checked.
const (
	shadow = "shadow"
	active = "active"
)

// A doctorCall is the values of the flags of the command doctor.
type doctorCall struct {
	cluster         access.Cluster
	namespace, mode string
	regions         []string
	form            cli.Form
}

// Command returns the command doctor.
func Command(p *cli.Program) *cobra.Command {
	var f doctorCall
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether Spotter can run here, and what to do where it cannot",
		Long: "doctor checks the kubeconfig, the API server, your rights, Karpenter, Spotter's\n" +
			"definitions, AWS, prices, the clock and ONNX Runtime, and changes nothing. Rights are\n" +
			"those of the user of the kubeconfig. It exits with 1 where a check failed and with 2\n" +
			"where the API server is not reached.",
		Example: "  spotter doctor\n  spotter doctor --mode active --region us-east-1\n  spotter doctor -o json",
		Args:    cli.Arguments(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return run(c.Context(), p, &f) },
	}
	flags := c.Flags()
	f.cluster.Register(flags)
	f.form.Register(c)
	access.RegisterNamespace(flags, &f.namespace)
	flags.StringVar(&f.mode, "mode", shadow, "require the rights of `MODE`: shadow or active")
	cli.Complete(c, "mode", []string{shadow, active})
	flags.StringSliceVar(&f.regions, "region", nil,
		"check the prices of `REGION,…` of AWS (default: the regions of the nodes)")
	return c
}

func run(ctx context.Context, p *cli.Program, f *doctorCall) error {
	if f.mode != shadow && f.mode != active {
		return cli.Invalid(fmt.Errorf("--mode: %q is neither %s nor %s%s", f.mode, shadow, active,
			cli.Meant(f.mode, []string{shadow, active})), "run `spotter doctor --help`")
	}
	f.namespace = cmp.Or(f.namespace, access.OwnNamespace())
	access.QuietClients()
	r := &report{}
	nodes := f.checkCluster(ctx, p, r)
	checkAWS(ctx, r, regionsOf(f.regions, nodes), len(nodes) > 0)
	checkONNX(r)
	if err := ctx.Err(); err != nil {
		return err
	}
	err := p.Print(&f.form, r, func(w io.Writer, _ bool) error { return r.write(w, p.Width("")) })
	return cmp.Or(err, r.err())
}

// checkCluster performs the checks that require the API server, and returns the nodes of the
// cluster.
func (f *doctorCall) checkCluster(ctx context.Context, p *cli.Program, r *report) []corev1.Node {
	cfg, err := f.cluster.Config(p.Version)
	if err != nil {
		r.fail("kubeconfig", "give --kubeconfig, set KUBECONFIG, or run in a pod with a service account", "%s",
			cli.FirstLine(err))
		r.unreachable = err
		return f.skipCluster(r, "no cluster is known")
	}
	r.ok("kubeconfig", "context %s, %s", cmp.Or(f.cluster.Name(), "of the pod"), cfg.Host)
	server, err := access.Ask(ctx, cfg)
	if err != nil {
		r.fail("API server", "check that `kubectl get nodes` works with this kubeconfig and context", "%s", cli.Words(err))
		r.unreachable = err
		return f.skipCluster(r, "the API server cannot be reached")
	}
	r.ok("API server", "Kubernetes %s", cmp.Or(server.Version, "of an unknown version: this user may not read it"))
	checkClock(r, &server)
	c, err := clientOf(cfg)
	if err != nil {
		r.fail("API server", "check that `kubectl api-resources` works", "%s", cli.FirstLine(err))
		return f.skipCluster(r, "the API server does not list its resources")
	}
	karpenter := checkKarpenter(ctx, r, c, cfg)
	f.checkRights(ctx, r, c, karpenter)
	checkDefinitions(ctx, r, c)
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes, client.Limit(nodesMax)); err != nil {
		return nil // the missing right has been reported
	}
	return nodes.Items
}

// nodesMax is the maximum number of nodes whose regions are used.
const nodesMax = 500

// skipCluster reports that the checks of a cluster were not made.
func (f *doctorCall) skipCluster(r *report, why string) []corev1.Node {
	for _, name := range []string{"clock", "Karpenter", "rights, " + shadow, "rights, " + active, "definitions"} {
		r.skip(name, "not checked: %s", why)
	}
	return nil
}

// clientOf returns a client whose rate limit allows a few hundred reviews.
func clientOf(cfg *rest.Config) (client.Client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst, cfg.Timeout = 100, 200, 15*time.Second
	return access.Client(cfg, apiextensionsv1.AddToScheme)
}

// clockMax is the maximum difference of clocks. Leases and the signatures of AWS tolerate almost a
// minute or more, but the time left after a notice is counted in seconds.
const clockMax = 10 * time.Second

func checkClock(r *report, s *access.Server) {
	word := "ahead of"
	if s.Ahead < 0 {
		word = "behind"
	}
	switch {
	case !s.Dated:
		r.skip("clock", "the API server's answers have no date")
	case s.Ahead.Abs() > clockMax:
		r.fail("clock", "synchronise both clocks with NTP", "the API server's clock is %v %s this machine's",
			s.Ahead.Abs(), word)
	case s.Ahead.Abs() <= time.Second:
		r.ok("clock", "agrees with the API server's")
	default:
		r.ok("clock", "the API server's clock is %v %s this machine's", s.Ahead.Abs(), word)
	}
}

// checkONNX reports whether the models of trained policies can be run. A missing ONNX Runtime is
// not an error, since no default policy needs it.
func checkONNX(r *report) {
	library, version, err := bundles.StartONNX()
	switch {
	case err == nil && version != "":
		r.ok("ONNX Runtime", "%s, %s", version, library)
	case !onnx.Linked:
		r.skip("ONNX Runtime", "not linked into this program; only the policy model with a bundle of models needs it")
	default:
		r.skip("ONNX Runtime", "not found; only the policy model with a bundle of models needs it")
	}
}

// regionsOf returns the AWS regions to check: the given ones, or those of the nodes if none is
// given.
func regionsOf(given []string, nodes []corev1.Node) []string {
	all := slices.Clone(given)
	for i := range nodes {
		if len(given) > 0 {
			break
		}
		if strings.HasPrefix(nodes[i].Spec.ProviderID, "aws:") {
			_, region, zone := cluster.SoldAs(&nodes[i])
			all = append(all, cmp.Or(region, livemarket.RegionIn(catalog.AWS, zone)))
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(s string) bool { return s == "" })
}
