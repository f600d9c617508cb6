package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/spotter-dev/spotter/policy"
)

// pageMax is the maximum number of prices in a response, and filterMax the maximum number of values
// of a filter (AWS documentation).
const (
	pageMax   = 1000
	filterMax = 200
)

// A window is a span of a region that is read page by page. Most windows are UTC days: a token is
// valid for a few minutes only, which is enough to read a day.
type window struct {
	region      string
	from, until policy.Time
}

// restartsMax is the number of times that a window is read from its start before it is halved.
// windowMin is the minimum length of each half.
const (
	restartsMax = 3
	windowMin   = policy.Time(time.Minute / time.Millisecond)
)

const day = policy.Time(24 * time.Hour / time.Millisecond)

// dayOf returns the start of the UTC day that contains t. t must not be before 1970.
func dayOf(t policy.Time) policy.Time { return t - t%day }

// fetchHistory reads all windows of the plan.
func (r *run) fetchHistory(ctx context.Context) error {
	total := 0
	for _, region := range r.plan.Regions {
		total += len(days(window{region, r.plan.From, r.plan.Until}))
	}
	for _, region := range r.plan.Regions {
		for _, d := range days(window{region, r.plan.From, r.plan.Until}) {
			for _, w := range r.missing(d) {
				if err := r.window(ctx, w); err != nil {
					return err
				}
			}
			r.done++
			if r.config.Progress != nil {
				r.config.Progress(r.done, total)
			}
		}
	}
	return nil
}

// days splits a window at the starts of days.
func days(w window) []window {
	var all []window
	for at := w.from; at < w.until; {
		end := min(dayOf(at)+day, w.until)
		all = append(all, window{w.region, at, end})
		at = end
	}
	return all
}

// missing returns the parts of w that no complete window of the journal covers. An incomplete
// window of the journal keeps its bounds, so that its token stays valid.
func (r *run) missing(w window) []window {
	var parts []window
	at := w.from
	var done []window
	for i := range r.pages {
		if p := &r.pages[i]; p.Next == "" && p.Region == w.region && p.Until > w.from && p.From < w.until {
			done = append(done, window{p.Region, p.From, p.Until})
		}
	}
	slices.SortFunc(done, func(a, b window) int { return cmp.Compare(a.from, b.from) })
	for _, d := range done {
		if d.from > at {
			parts = append(parts, window{w.region, at, d.from})
		}
		at = max(at, d.until)
	}
	if at < w.until {
		parts = append(parts, window{w.region, at, w.until})
	}
	return parts
}

// window reads w. If tokens repeatedly expire before the end of w, it reads both halves of w
// instead.
func (r *run) window(ctx context.Context, w window) error {
	token := r.lastToken(w)
	for range restartsMax {
		again, err := r.plan.pages(ctx, r.session.prices[w.region], w, token,
			func(answer *ec2.DescribeSpotPriceHistoryOutput) error {
				p, err := r.plan.page(w, answer)
				if err != nil {
					return fault(ctx, actionHistory, w.region, err)
				}
				return r.keep(entry{Page: p})
			})
		if !again {
			return err
		}
		token = ""
	}
	if w.until-w.from < 2*windowMin {
		return fault(ctx, actionHistory, w.region,
			fmt.Errorf("the pages from %v to %v cannot be read before their tokens expire", w.from, w.until))
	}
	r.splits++
	middle := w.from + (w.until-w.from)/2
	middle -= middle % 1000 // requests have a resolution of one second
	if err := r.window(ctx, window{w.region, w.from, middle}); err != nil {
		return err
	}
	return r.window(ctx, window{w.region, middle, w.until})
}

// lastToken returns the token with which the journal of w continues; empty if w must be read from
// its start.
func (r *run) lastToken(w window) string {
	for i := len(r.pages) - 1; i >= 0; i-- {
		if p := &r.pages[i]; p.Region == w.region && p.From == w.from && p.Until == w.until {
			return p.Next
		}
	}
	return ""
}

// errCircle is returned for pages that form a loop.
var errCircle = errors.New("its pages form a loop")

// pages requests the pages of w in order, starting at token, and calls each for every response. A
// page that is not the last may be short or empty. If an error occurs, again reports whether it
// concerns a token, so that w may be read from its start.
func (p *plan) pages(
	ctx context.Context, client *ec2.Client, w window, token string, each func(*ec2.DescribeSpotPriceHistoryOutput) error,
) (again bool, err error) {
	used := map[string]bool{}
	for {
		answer, err := client.DescribeSpotPriceHistory(ctx, p.request(w, token))
		if err != nil {
			return token != "" && tokenRefused(err), fault(ctx, actionHistory, w.region, err)
		}
		if token = sdk.ToString(answer.NextToken); used[token] {
			return true, fault(ctx, actionHistory, w.region, errCircle)
		}
		if err := each(answer); err != nil || token == "" {
			return false, err
		}
		used[token] = true
	}
}

func (p *plan) request(w window, token string) *ec2.DescribeSpotPriceHistoryInput {
	from, until := w.from.Std(), w.until.Std()
	in := &ec2.DescribeSpotPriceHistoryInput{
		StartTime: &from, EndTime: &until, MaxResults: sdk.Int32(pageMax),
		ProductDescriptions: []string{p.Product},
	}
	wanted := slices.Clone(p.Types)
	for _, family := range p.Families {
		wanted = append(wanted, family+".*")
	}
	if len(wanted) > 0 {
		in.Filters = []types.Filter{{Name: sdk.String("instance-type"), Values: wanted}}
	}
	if token != "" {
		in.NextToken = &token
	}
	return in
}

// page returns the rows of a response that the plan includes. Rows from before the window are kept:
// the last one of each market is in effect at the start of the window.
func (p *plan) page(w window, answer *ec2.DescribeSpotPriceHistoryOutput) (*page, error) {
	g := &page{Region: w.region, From: w.from, Until: w.until, Next: sdk.ToString(answer.NextToken)}
	zones, kinds := index[zoneName]{}, index[string]{}
	for i := range answer.SpotPriceHistory {
		row, asked, err := p.row(&answer.SpotPriceHistory[i])
		if err != nil {
			return nil, err
		}
		if !asked {
			continue
		}
		g.Zone, g.Type = append(g.Zone, zones.of(zoneName{row.ZoneName, row.ZoneID}, &g.Zones)), append(g.Type,
			kinds.of(row.Type, &g.Types))
		g.At, g.Price = append(g.At, row.At), append(g.Price, row.Price)
	}
	return g, nil
}

// row converts a row of a response. asked is false for a row that p does not include.
func (p *plan) row(row *types.SpotPrice) (price SpotPrice, asked bool, err error) {
	kind := string(row.InstanceType)
	if string(row.ProductDescription) != p.Product || !takes(p.Types, p.Families, kind) {
		return SpotPrice{}, false, nil
	}
	price = SpotPrice{ZoneName: sdk.ToString(row.AvailabilityZone), ZoneID: sdk.ToString(row.AvailabilityZoneId),
		Type: kind}
	if row.Timestamp == nil || kind == "" || price.ZoneName+price.ZoneID == "" {
		return SpotPrice{}, false, fmt.Errorf("a row has no time, no type or no zone: %v", describe(row))
	}
	if price.At = policy.TimeOf(*row.Timestamp); price.At >= p.Until {
		return SpotPrice{}, false, nil
	}
	if price.Price, err = dollars(sdk.ToString(row.SpotPrice)); err != nil {
		return SpotPrice{}, false, fmt.Errorf("%w: %v", err, describe(row))
	}
	return price, true, nil
}

// describe formats a row for an error message.
func describe(row *types.SpotPrice) string {
	return fmt.Sprintf("%s %s %s %q at %v", sdk.ToString(row.AvailabilityZone), row.InstanceType,
		row.ProductDescription, sdk.ToString(row.SpotPrice), sdk.ToTime(row.Timestamp))
}

// An index maps names to numbers.
type index[T comparable] map[T]int

func (x index[T]) of(name T, names *[]T) int {
	i, ok := x[name]
	if !ok {
		i = len(*names)
		x[name] = i
		*names = append(*names, name)
	}
	return i
}

// priceMax is an upper bound of plausible prices, in dollars per node-hour.
const priceMax = 100_000

// dollars parses a price in the format of AWS, such as "0.096000".
func dollars(text string) (policy.Money, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= priceMax) {
		return 0, fmt.Errorf("%q is not a price", text)
	}
	return policy.Dollars(v), nil
}
