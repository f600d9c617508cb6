package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kubefake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/cmd/spotter/config"
	"github.com/spotter-dev/spotter/live/aws"
	"github.com/spotter-dev/spotter/live/aws/wire"
	livemarket "github.com/spotter-dev/spotter/live/market"
)

// A feedOf answers with what its name says, or with an error.
type feedOf struct {
	name string
	err  error
}

func (f *feedOf) Name() string         { return f.name }
func (f *feedOf) Every() time.Duration { return time.Hour }
func (f *feedOf) Prices() bool         { return true }
func (f *feedOf) Read(_ context.Context, ask livemarket.Ask) (*livemarket.Update, error) {
	if f.err != nil {
		return nil, f.err
	}
	return &livemarket.Update{AsOf: ask.Now}, nil
}

// names joins those of feeds.
func names(feeds []livemarket.Feed) string {
	var all []string
	for _, f := range feeds {
		all = append(all, f.Name())
	}
	return strings.Join(all, ", ")
}

// The condition names every source of prices that fails, and reports where there is no source or
// none was read yet.
func TestConditionPricesRead(t *testing.T) {
	w := &wiring{clock: clock.RealClock{}}
	prices := func(feeds ...livemarket.Feed) metav1.Condition {
		t.Helper()
		c := livemarket.DefaultConfig()
		c.Feeds, c.Log = feeds, slog.New(slog.DiscardHandler)
		var err error
		if w.book, err = livemarket.New(c); err != nil {
			t.Fatal(err)
		}
		if c := w.pricesRead("web")[0]; len(feeds) > 0 && (c.Status != metav1.ConditionFalse || c.Reason != "NotRead" ||
			!strings.HasSuffix(c.Message, ": "+names(feeds))) {
			t.Errorf("before any feed was read: %+v", c)
		}
		_ = w.book.Refresh(t.Context()) // the condition reports its error
		all := w.pricesRead("web")
		if len(all) != 1 || all[0].Type != conditionPrices {
			t.Fatalf("conditions %+v", all)
		}
		return all[0]
	}
	if c := prices(); c.Status != metav1.ConditionFalse || c.Reason != "NoSource" {
		t.Errorf("without a source: %+v", c)
	}
	if c := prices(&feedOf{name: "a"}, &feedOf{name: "b"}); c.Status != metav1.ConditionTrue || c.Reason != "Read" {
		t.Errorf("all answer: %+v", c)
	}
	broken := &feedOf{"b", errors.New("AccessDenied")}
	if c := prices(&feedOf{name: "a"}, broken, &feedOf{"c", errors.New("timeout")}); c.Status != metav1.ConditionFalse ||
		c.Reason != "SourceFailed" ||
		!strings.Contains(c.Message, "b: AccessDenied; c: timeout; ") || strings.Contains(c.Message, "a:") {
		t.Errorf("two do not answer: %+v", c)
	}
	for _, err := range []error{aws.ErrNoCredentials, aws.ErrCredentials, aws.ErrExpired} {
		if c := prices(&feedOf{"b", fmt.Errorf("ec2: %w", err)}); c.Status != metav1.ConditionFalse || c.Reason != "CredentialsInvalid" {
			t.Errorf("%v: %+v", err, c)
		}
	}
	missing := fmt.Errorf("%w: no EC2 IMDS role found", aws.ErrNoCredentials)
	many := errors.Join(missing, missing, missing)
	const want = "b, c: no credentials found: no EC2 IMDS role found; " + wire.RoleAdvice + "; data read earlier stays in use"
	if c := prices(&feedOf{"b", many}, &feedOf{"c", many}, &feedOf{name: "d"}); c.Reason != "CredentialsInvalid" || c.Message != want {
		t.Errorf("one cause of two feeds: %+v, want the message %q", c, want)
	}
	if c := prices(&feedOf{"b", fmt.Errorf("%w: no cloudspace can be read", livemarket.ErrNothingWanted)}); c.Status != metav1.ConditionFalse {
		t.Errorf("nothing can be wanted of it: %+v", c)
	}
	if c := prices(&feedOf{"b", livemarket.ErrNothingWanted}); c.Status != metav1.ConditionTrue {
		t.Errorf("nothing is wanted of it: %+v", c)
	}
	broken.err = nil
	if c := prices(broken); c.Status != metav1.ConditionTrue {
		t.Errorf("it answers again: %+v", c)
	}
}

// zonedNode is a node with labels for its zone and, unless id is empty, the ID of the zone.
func zonedNode(name, zone, id string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{corev1.LabelTopologyRegion: "us-east-1", corev1.LabelTopologyZone: zone}}}
	if id != "" {
		n.Labels[labelZoneID] = id
	}
	return n
}

// Zones are named once each, by nodes that say both name and ID, and again where an ID
// changes.
func TestZonesAreNamedByNodes(t *testing.T) {
	nodes := kubefake.NewClientBuilder().WithObjects(
		zonedNode("a", "us-east-1a", "use1-az6"), zonedNode("b", "us-east-1a", "use1-az6"), zonedNode("c", "us-east-1b",
			"use1-az1"), zonedNode("d", "us-east-1c", "")).Build()
	var named []livemarket.Zone
	z := &zoneNamer{reader: nodes, provider: "aws", name: func(x livemarket.Zone) { named = append(named, x) }}
	for range 3 {
		if err := z.Report(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	want := []livemarket.Zone{{Provider: "aws", Region: "us-east-1", Name: "us-east-1a", ID: "use1-az6"},
		{Provider: "aws", Region: "us-east-1", Name: "us-east-1b", ID: "use1-az1"}}
	if !slices.Equal(named, want) {
		t.Errorf("named %v, want %v", named, want)
	}
	if err := nodes.Create(t.Context(), zonedNode("e", "us-east-1c", "use1-az2")); err != nil {
		t.Fatal(err)
	}
	if err := z.Report(t.Context(), nil); err != nil || len(named) != 3 || named[2].ID != "use1-az2" {
		t.Errorf("after a node in another zone: %v, error %v", named, err)
	}
	z.reader = interceptor.NewClient(nodes, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("forbidden")
		},
	})
	if err := z.Report(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("nodes that cannot be listed: %v", err)
	}
}

// pricedEvery are settings with an interval of prices.
func pricedEvery(every time.Duration, regions ...string) *liveCall {
	f := &liveCall{SpotterConfiguration: *config.Default()}
	f.Prices.Regions, f.Prices.Interval.Duration = regions, every
	return f
}

// Spot prices are read at the configured interval, and by default at one that suits the provider.
// The API of an auction reports prices and outbid nodes: it is polled at least as often as prices
// are read.
func TestPriceInterval(t *testing.T) {
	for _, every := range []time.Duration{0, 7 * time.Second} {
		w := &wiring{clock: clock.RealClock{}, f: pricedEvery(every, "us-east-1")}
		feeds, err := w.askAWS()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range feeds {
			if spot := f.Name() == "aws-spot-prices"; spot && f.Every() != cmp.Or(every, 5*time.Minute) || !spot && f.Every() == every {
				t.Errorf("asked for %v, %s is read every %v", every, f.Name(), f.Every())
			}
		}
	}
	for _, every := range []time.Duration{0, 7 * time.Second} {
		w := &wiring{clock: clock.RealClock{}, f: pricedEvery(every, "us-east-1"), log: slog.New(slog.DiscardHandler)}
		w.f.Prices.AzureRegions = []string{"westeurope"}
		feeds, err := w.feeds()
		if err != nil || !strings.HasSuffix(names(feeds), ", azure-prices") {
			t.Fatalf("feeds %s, %v", names(feeds), err)
		}
		if f := feeds[len(feeds)-1]; f.Every() != cmp.Or(every, 30*time.Minute) {
			t.Errorf("asked for %v, %s is read every %v", every, f.Name(), f.Every())
		}
	}
	for every, want := range map[time.Duration]time.Duration{0: 30 * time.Second, 7 * time.Second: 7 * time.Second,
		time.Hour: 30 * time.Second} {
		w := &wiring{clock: clock.RealClock{}, f: pricedEvery(every)}
		if c := w.auction(); c.Prices != cmp.Or(every, time.Minute) || c.Poll != want {
			t.Errorf("asked for %v, the auction's prices are read every %v and its API is polled every %v", every, c.Prices, c.Poll)
		}
	}
}
