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

// pageMax is the most prices of one answer, filterMax the most values of a
// filter (AWS documentation).
const (
	pageMax   = 1000
	filterMax = 200
)

// A window is a span of a region that is read page by page. Most are a UTC
// day: a token is good for some minutes only, and a day is read in less.
type window struct {
	region      string
	from, until policy.Time
}

// The most times a window is read from its start before it is halved, and the
// shortest window that is.
const (
	restartsMax = 3
	windowMin   = policy.Time(time.Minute / time.Millisecond)
)

const day = policy.Time(24 * time.Hour / time.Millisecond)

// dayOf returns the start of the UTC day that holds t, which is after 1970.
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

// days cuts a window at the starts of days.
func days(w window) []window {
	var all []window
	for at := w.from; at < w.until; {
		end := min(dayOf(at)+day, w.until)
		all = append(all, window{w.region, at, end})
		at = end
	}
	return all
}

// missing returns the parts of w that no complete window of the journal
// covers. A part that was begun keeps its bounds, so that its token is good.
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

// window reads w. When tokens expire before its end is reached, again and
// again, it is halved.
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
	middle -= middle % 1000 // a request has whole seconds
	if err := r.window(ctx, window{w.region, w.from, middle}); err != nil {
		return err
	}
	return r.window(ctx, window{w.region, middle, w.until})
}

// lastToken returns where the journal broke off within w.
func (r *run) lastToken(w window) string {
	for i := len(r.pages) - 1; i >= 0; i-- {
		if p := &r.pages[i]; p.Region == w.region && p.From == w.from && p.Until == w.until {
			return p.Next
		}
	}
	return ""
}

// errCircle is returned for pages that lead to each other.
var errCircle = errors.New("its pages form a loop")

// pages requests the pages of w one after another, from token on, and calls each with them. A page
// may be short or empty and not be the last. With an error, again reports whether it concerns a
// token, so that w may be read from its start.
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

// page takes from a response what the plan includes. Rows from before the window are kept: the last
// of each market is in force at its start.
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

// row reads a row of a response. Asked is false for a row that p does not include.
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

// describe writes a row for an error.
func describe(row *types.SpotPrice) string {
	return fmt.Sprintf("%s %s %s %q at %v", sdk.ToString(row.AvailabilityZone), row.InstanceType,
		row.ProductDescription, sdk.ToString(row.SpotPrice), sdk.ToTime(row.Timestamp))
}

// An index numbers names.
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

// priceMax is above any price of a node-hour.
const priceMax = 100_000

// dollars reads a price as AWS writes it, as "0.096000".
func dollars(text string) (policy.Money, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= priceMax) {
		return 0, fmt.Errorf("%q is not a price", text)
	}
	return policy.Dollars(v), nil
}
