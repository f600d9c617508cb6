package importer

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A percentilesFeed is the public price feed of Rackspace Spot. It contains the current prices
// without a time.
type percentilesFeed struct {
	Regions map[string]struct {
		Classes map[string]serverClass `json:"serverclasses"`
	} `json:"regions"`
}

// A serverClass is the market of a server class in a region. The feed writes its numbers as JSON
// numbers or strings.
type serverClass struct {
	Price json.RawMessage `json:"market_price"`
	P20   json.RawMessage `json:"20_percentile"`
	P50   json.RawMessage `json:"50_percentile"`
	P80   json.RawMessage `json:"80_percentile"`
}

// percentiles reads one snapshot of the feed.
func (im *importer) percentiles(r io.Reader) error {
	im.took("JSON of the Rackspace percentiles feed")
	var feed percentilesFeed
	if err := whole(r, &feed, false); err != nil {
		return err
	}
	at, err := im.snapshotTime()
	if err != nil {
		return err
	}
	for _, region := range slices.Sorted(maps.Keys(feed.Regions)) {
		classes := feed.Regions[region].Classes
		for _, class := range slices.Sorted(maps.Keys(classes)) {
			im.report.Rows++
			e, err := im.class(region, class, classes[class])
			if err != nil {
				if err := im.badAt(region+"/"+class, err); err != nil {
					return err
				}
				continue
			}
			e.at = at
			im.add(e)
		}
	}
	return nil
}

// class returns the event of one market.
func (im *importer) class(region, name string, c serverClass) (e event, err error) {
	text := func(raw json.RawMessage) []byte {
		if string(raw) == "null" {
			return nil
		}
		return []byte(strings.Trim(string(raw), `"`))
	}
	if len(text(c.Price)) == 0 {
		return e, fmt.Errorf("no price")
	}
	if e.spot, err = price(text(c.Price), policy.NoPrice); err != nil {
		return e, err
	}
	e.says = saysSpot
	if e.market, err = im.market("", catalog.Rackspace, []byte(region), []byte(region), []byte(name), nil); err != nil {
		return e, err
	}
	return e, im.takeBids(&e, text(c.P20), text(c.P50), text(c.P80))
}

// dated matches a time in the name of a file, such as percentiles-2026-05-26.json or
// 2026-05-26T20-46-18Z.json. Seconds since 1970 are accepted too.
var dated = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(\d{4}-\d\d-\d\d)(?:[T_ -](\d\d)[:.-]?(\d\d)(?:[:.-]?(\d\d))?Z?)?|\b(\d{10})\b`)
})

// snapshotTime returns the time of the source: the one in the options, or else the one in its name.
// The time in the options can apply to only one source.
func (im *importer) snapshotTime() (policy.Time, error) {
	if im.o.At != 0 {
		if im.snapshots++; im.snapshots > 1 {
			return 0, fmt.Errorf("%w: one instant is given for several snapshots; put each one's into its name, "+
				"like percentiles-2026-05-26T20-46-18Z.json", trace.ErrUnnamed)
		}
		return im.o.At, nil
	}
	name := baseName(im.path)
	m := dated().FindStringSubmatch(name)
	if m == nil {
		return 0, fmt.Errorf("%w: neither its name, %q, nor an option says when the snapshot was taken",
			trace.ErrUnnamed, filepath.Base(im.path))
	}
	if m[5] != "" {
		seconds, err := strconv.ParseInt(m[5], 10, 64)
		return policy.Time(seconds * 1000), err
	}
	text := m[1] + " 00:00:00"
	if m[2] != "" {
		text = m[1] + " " + m[2] + ":" + m[3] + ":" + max(m[4], "00")
	}
	at, err := time.Parse(time.DateTime, text)
	if err != nil {
		return 0, fmt.Errorf("%w: its name has %q, which is not a date", trace.ErrUnnamed, m[0])
	}
	return policy.TimeOf(at), nil
}
