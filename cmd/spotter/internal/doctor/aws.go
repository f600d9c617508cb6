package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/aws"
	"github.com/spotter-dev/spotter/live/rights"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// probeType is the instance type whose prices are read. Every region has it.
const probeType = "m5.large"

// The names of the AWS checks.
const (
	nameCredentials = "AWS credentials"
	namePermissions = "AWS permissions"
	namePrices      = "prices"
)

const policyNext = "give the role what `spotter run --print-iam-policy` prints"

// checkAWS makes the controller's requests to AWS in the first of the regions, except for placement
// scores, whose requests count against a quota.
func checkAWS(ctx context.Context, r *report, regions []string, nodes bool) {
	if len(regions) == 0 {
		why := "no region of AWS is known: give --region"
		if nodes {
			why = "no node runs at AWS; --region checks it all the same"
		}
		r.skip(nameCredentials, "%s", why)
		r.skip(namePermissions, "%s", why)
		r.skip(namePrices, "on demand, of the catalog of %s; Spot prices of AWS: %s", catalog.Date(catalog.AWS), why)
		return
	}
	c := aws.DefaultConfig()
	c.Regions, c.Types = regions, []string{probeType}
	reader, err := aws.NewReader(c)
	if err != nil {
		r.fail(nameCredentials, "give --region as us-east-1", "%s", cli.FirstLine(err))
		return
	}
	wait := access.AWSWait()
	ctx, stop := context.WithTimeout(ctx, wait)
	defer stop()
	prices, spotErr := spotPrices(ctx, reader, regions[0])
	if spotErr != nil && !errors.Is(spotErr, aws.ErrPermission) {
		why := access.AWSRefusal(spotErr, wait)
		r.fail(nameCredentials,
			"set AWS_PROFILE or AWS_ACCESS_KEY_ID, or log in with `aws sso login`; `aws sts get-caller-identity` must work", "%s", why)
		r.skip(namePermissions, "not checked: %s", why)
		r.fail(namePrices, "as for the credentials of AWS",
			"no Spot price is known: %s; on-demand prices are those of the catalog of %s", why, catalog.Date(catalog.AWS))
		return
	}
	r.ok(nameCredentials, "AWS answers for %s", strings.Join(regions, ", "))
	denied := probe(ctx, reader, regions[0])
	checkPermissions(r, spotErr, denied)
	checkPrices(r, prices, spotErr, regions[0])
}

func spotPrices(ctx context.Context, reader *aws.Reader, region string) ([]aws.SpotPrice, error) {
	until := policy.TimeOf(time.Now().Truncate(time.Second))
	prices, _, err := reader.Prices(ctx, region, until.Add(-time.Hour), until)
	return prices, err
}

// probe makes the optional requests of the controller, and returns the error of each action.
func probe(ctx context.Context, reader *aws.Reader, region string) map[string]error {
	reads := map[string]func() error{
		"ec2:DescribeAvailabilityZones":     func() error { _, err := reader.Zones(ctx, region); return err },
		"ec2:DescribeInstanceTypeOfferings": func() error { _, err := reader.Offerings(ctx, region); return err },
		"ec2:DescribeInstanceTypes":         func() error { _, err := reader.Types(ctx, region); return err },
		"pricing:GetProducts":               func() error { _, err := reader.OnDemand(ctx, region); return err },
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	errs := map[string]error{}
	for action, read := range reads {
		all.Go(func() {
			err := read()
			mu.Lock()
			defer mu.Unlock()
			errs[action] = err
		})
	}
	all.Wait()
	return errs
}

// checkPermissions reports the actions that AWS denies, and the consequence of each.
func checkPermissions(r *report, spotErr error, errs map[string]error) {
	var without, unchecked []string
	allowed := 0
	for _, p := range rights.AWS() {
		err, read := errs[p.Action]
		switch {
		case p.Part != rights.Prices, !read:
		case errors.Is(err, aws.ErrPermission):
			without = append(without, fmt.Sprintf("without %s: %s", p.Action, strings.TrimSuffix(p.Without, ".")))
		case err != nil:
			unchecked = append(unchecked, p.Action)
		default:
			allowed++
		}
	}
	text := fmt.Sprintf("%s allowed", figures.Count(allowed, "optional action"))
	if len(without) > 0 {
		text += "; " + strings.Join(without, "; ")
	}
	if len(unchecked) > 0 {
		text += "; no answer to " + strings.Join(unchecked, ", ")
	}
	if spotErr != nil {
		r.fail(namePermissions, policyNext, "ec2:DescribeSpotPriceHistory is denied; %s", text)
		return
	}
	r.ok(namePermissions, "ec2:DescribeSpotPriceHistory and %s", text)
}

// checkPrices reports the age of the newest Spot price. AWS publishes a change within minutes.
func checkPrices(r *report, prices []aws.SpotPrice, spotErr error, region string) {
	var newest policy.Time
	zones := map[string]bool{}
	for _, p := range prices {
		newest, zones[p.ZoneName+p.ZoneID] = max(newest, p.At), true
	}
	switch {
	case spotErr != nil:
		r.fail(namePrices, policyNext, "no Spot price is known; on-demand prices are those of the catalog of %s",
			catalog.Date(catalog.AWS))
	case len(prices) == 0:
		r.fail(namePrices, "check --region", "AWS has no Spot price of %s in %s", probeType, region)
	default:
		r.ok(namePrices, "Spot prices of %s in %s of %s, the newest %s old", probeType, figures.Count(len(zones), "zone"),
			region, figures.Duration(time.Since(newest.Std())))
	}
}
