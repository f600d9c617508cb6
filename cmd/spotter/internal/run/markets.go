package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/aws"
	"github.com/spotter-dev/spotter/live/aws/wire"
	"github.com/spotter-dev/spotter/live/azure"
	"github.com/spotter-dev/spotter/live/cluster"
	livemarket "github.com/spotter-dev/spotter/live/market"
	"github.com/spotter-dev/spotter/live/rackspace"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// auction returns the configuration of requests to Rackspace. The API, which is ahead of the public
// price feed, is polled at least as often as the feed.
func (w *wiring) auction() rackspace.Config {
	c := rackspace.DefaultConfig()
	c.Clock = w.clock
	c.Prices = cmp.Or(w.f.Prices.Interval.Duration, c.Prices)
	c.Poll = min(c.Poll, c.Prices)
	return c
}

// observe creates the market book and the observer of the cluster.
func (w *wiring) observe(ctx context.Context) error {
	c := livemarket.DefaultConfig()
	c.Clock = w.clock
	c.Cache, c.Log, c.Regions = w.f.Prices.CacheFile, w.log, w.regions()
	var err error
	if c.Feeds, err = w.feeds(); err != nil {
		return err
	}
	if w.book, err = livemarket.New(c); err != nil {
		return cli.Invalid(err, fieldAdvice)
	}
	o := cluster.DefaultConfig()
	o.Clock = w.clock
	o.Log, o.Provider = w.log, w.f.Provider
	for _, l := range w.f.SpotLabels {
		label, err := kube.ParseCapacityLabel(l)
		if err != nil {
			return cli.Invalid(w.f.fault("spotLabels", err), "write it as name or name=value")
		}
		o.Capacity.Own = append(o.Capacity.Own, label)
	}
	if w.observer, err = cluster.New(o, w.book); err != nil {
		return err
	}
	w.parts.Observer, w.parts.Wakes = w.observer, w.observer.Wakes()
	w.parts.Experience, w.parts.Referee = w.book, w.observer
	w.parts.Judges = append(w.parts.Judges, w.observer, judged(w.pricesRead))
	w.parts.Reporters = append(w.parts.Reporters, &zoneNamer{reader: w.manager.GetClient(), provider: w.f.Provider,
		name: w.book.NameZone})
	return errors.Join(w.everywhere(w.readPrices()), w.everywhere(w.readUsage), w.observer.SetupWithManager(w.manager))
}

// regions returns the regions of all providers whose prices are read.
func (w *wiring) regions() []string {
	return slices.Concat(w.f.Prices.Regions, w.f.Prices.AzureRegions)
}

// feeds creates the feeds of the market book.
func (w *wiring) feeds() (all []livemarket.Feed, err error) {
	p := &w.f.Prices
	if p.Trace != "" {
		feed, err := livemarket.NewFolder(livemarket.FolderConfig{Path: p.Trace,
			Every: cmp.Or(p.Interval.Duration, time.Minute), Regions: w.regions()})
		if err != nil {
			return nil, cli.Invalid(w.f.fault("prices.trace", err), "give the folder of a trace")
		}
		all = append(all, feed)
	}
	if p.Trace == "" && len(p.Regions) > 0 {
		feeds, err := w.askAWS()
		if err != nil {
			return nil, cli.Invalid(w.f.fault("prices.regions", err), "name regions of AWS, as us-east-1")
		}
		all = append(all, feeds...)
	}
	if p.Trace == "" && len(p.AzureRegions) > 0 {
		feed, err := w.askAzure()
		if err != nil {
			return nil, cli.Invalid(w.f.fault("prices.azureRegions", err), "name regions of Azure, as westeurope")
		}
		all = append(all, feed)
	}
	if slices.Contains(w.f.Backends, "rackspace") {
		if w.rackspace, err = rackspace.NewFeed(w.auction()); err != nil {
			return nil, err
		}
		all = append(all, w.rackspace)
	}
	return all, nil
}

// askAzure returns the feed of Azure's prices.
func (w *wiring) askAzure() (livemarket.Feed, error) {
	c := access.AzurePrices(w.f.Prices.AzureRegions...)
	c.Log, c.Clock, c.Every = w.log, w.clock, cmp.Or(w.f.Prices.Interval.Duration, c.Every)
	return azure.NewFeed(c)
}

// readPrices returns a function that reads the feeds once, allows the first step, and then keeps
// reading them.
func (w *wiring) readPrices() func(context.Context) error {
	priced := make(chan struct{})
	w.parts.Priced = priced
	return func(ctx context.Context) error {
		if err := w.book.Refresh(ctx); err != nil && ctx.Err() == nil {
			w.log.Warn("market data is incomplete at the start", "error", err)
		}
		close(priced)
		return w.book.Run(ctx)
	}
}

// A judged is a function that implements live.Judge.
type judged func(pool string) []metav1.Condition

func (f judged) Conditions(pool string) []metav1.Condition { return f(pool) }

// conditionPrices reports whether all price sources respond.
const conditionPrices = "PricesRead"

// pricesRead returns a condition that reports whether the last read of every feed succeeded. It is
// false for feeds that have not been read yet.
func (w *wiring) pricesRead(string) []metav1.Condition {
	c := metav1.Condition{Type: conditionPrices, Status: metav1.ConditionTrue, Reason: "Read",
		Message: "all price sources respond"}
	var causes, unread []string
	failed, keys := map[string][]string{}, false // feeds by cause; whether a cause is invalid credentials
	feeds := w.book.Health()
	for _, h := range feeds {
		switch {
		case h.Err != nil:
			for _, cause := range aws.Causes(h.Err) {
				if failed[cause] == nil {
					causes = append(causes, cause)
				}
				failed[cause] = append(failed[cause], h.Feed)
			}
			keys = keys || errors.Is(h.Err, aws.ErrNoCredentials) || errors.Is(h.Err, aws.ErrCredentials) ||
				errors.Is(h.Err, aws.ErrExpired)
		case !h.Asked:
			unread = append(unread, h.Feed)
		}
	}
	switch {
	case len(feeds) == 0:
		c.Status, c.Reason = metav1.ConditionFalse, "NoSource"
		c.Message = "no price source is configured: on-demand prices are those of the catalog, and no Spot market is known"
	case len(causes) > 0:
		var parts []string
		for _, cause := range causes {
			parts = append(parts, strings.Join(failed[cause], ", ")+": "+cause)
		}
		c.Status, c.Reason = metav1.ConditionFalse, "SourceFailed"
		if keys {
			c.Reason, parts = "CredentialsInvalid", append(parts, wire.RoleAdvice)
		}
		c.Message = strings.Join(append(parts, "data read earlier stays in use"), "; ")
	case len(unread) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "NotRead", "not read since this replica started: "+strings.Join(unread, ", ")
	}
	return []metav1.Condition{c}
}

// A zoneNamer passes the zone IDs in the labels of nodes to the market book.
type zoneNamer struct {
	reader   client.Reader
	provider string
	name     func(livemarket.Zone)
	reported map[livemarket.Zone]bool
}

// labelZoneID is the label of a node with the AWS zone ID. The names of a zone differ between
// accounts.
const labelZoneID = "topology.k8s.aws/zone-id"

// Report implements live.Reporter. It writes nothing.
func (z *zoneNamer) Report(ctx context.Context, _ *policy.Snapshot) error {
	var nodes corev1.NodeList
	if err := z.reader.List(ctx, &nodes, client.HasLabels{labelZoneID}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for i := range nodes.Items {
		l := nodes.Items[i].Labels
		zone := livemarket.Zone{Provider: z.provider, Region: l[corev1.LabelTopologyRegion],
			Name: l[corev1.LabelTopologyZone], ID: l[labelZoneID]}
		if z.reported[zone] {
			continue
		}
		if z.reported == nil {
			z.reported = map[livemarket.Zone]bool{}
		}
		z.reported[zone] = true
		z.name(zone)
	}
	return nil
}

// askAWS returns the AWS feeds.
func (w *wiring) askAWS() ([]livemarket.Feed, error) {
	c := aws.DefaultConfig()
	c.Regions, c.Families = w.f.Prices.Regions, w.f.Prices.Families
	if w.f.Prices.CacheFile != "" {
		c.Dir = filepath.Dir(w.f.Prices.CacheFile) // so that the quota of placement scores is counted across restarts
	}
	r, err := aws.NewReader(c)
	if err != nil {
		return nil, err
	}
	return livemarket.NewAWS(r, cmp.Or(w.f.Prices.Interval.Duration, 5*time.Minute)), nil
}
