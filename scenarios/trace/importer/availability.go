package importer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// knownKinds maps the names of instance types in file names to their names at the provider. A
// recording of SkyPilot's Spot traces is named by accelerator, or by kind of processor, and their
// number; a recording of Bamboo is named by family.
var knownKinds = map[string]string{
	catalog.AWS + "/v100_1":   "p3.2xlarge",
	catalog.AWS + "/v100_4":   "p3.8xlarge",
	catalog.AWS + "/v100_8":   "p3.16xlarge",
	catalog.AWS + "/k80_1":    "p2.xlarge",
	catalog.AWS + "/k80_8":    "p2.8xlarge",
	catalog.AWS + "/k80_16":   "p2.16xlarge",
	catalog.AWS + "/intel_64": "r5.16xlarge",
	catalog.AWS + "/p3":       "p3.2xlarge",
	catalog.GCP + "/c3-88":    "c3-highcpu-88",
}

// A sampled is a recording of one market that was observed at regular intervals. Data contains the
// number of available nodes at each observation.
type sampled struct {
	Metadata struct {
		Gap float64 `json:"gap_seconds"`
	} `json:"metadata"`
	Data   []*float64 `json:"data"`
	Prices []*float64 `json:"prices"`
}

// samples reads a recording of availability. Its file name contains the market, and its folder the
// start.
func (im *importer) samples(r io.Reader) error {
	im.took("JSON of availability")
	var rec sampled
	if err := whole(r, &rec, false); err != nil {
		return err
	}
	gap := rec.Metadata.Gap
	switch {
	case !(gap > 0 && gap <= trace.ProbeGapMax):
		return fmt.Errorf("%w: metadata.gap_seconds is %v, must be above 0 and at most %d", trace.ErrValue, gap,
			trace.ProbeGapMax)
	case len(rec.Data) == 0:
		return fmt.Errorf("%w: data holds no samples", trace.ErrEmpty)
	case rec.Prices != nil && len(rec.Prices) != len(rec.Data):
		return fmt.Errorf("%w: prices has %d entries and data %d", trace.ErrValue, len(rec.Prices), len(rec.Data))
	}
	market, begin, err := im.sampledMarket()
	if err != nil {
		return err
	}
	last, several := 0, 0 // last is the index of the previous valid sample, or of the first
	for i, count := range rec.Data {
		im.report.Rows++
		e, err := rec.event(i)
		if err != nil {
			if err := im.badAt(fmt.Sprintf("data[%d]", i), err); err != nil {
				return err
			}
			continue
		}
		if *count > 1 {
			several++
		}
		e.market = market
		e.at = begin + policy.Time(math.Round(float64(i)*gap*1000))
		e.gap = int32(min(math.Ceil(float64(i-last)*gap), trace.ProbeGapMax))
		last = i
		im.add(e)
	}
	if several > 0 {
		im.warn("%s counts nodes: the market is taken as available where it had any", filepath.Base(im.path))
	}
	return nil
}

// event returns the event of sample i.
func (rec *sampled) event(i int) (e event, err error) {
	count := rec.Data[i]
	if count == nil || !(*count >= 0) || *count != math.Trunc(*count) {
		return e, errors.New("it is not a number of nodes")
	}
	e.says = saysAvailable
	if *count > 0 {
		e.available = 1
	}
	if rec.Prices == nil || rec.Prices[i] == nil {
		return e, nil
	}
	m, ok := trace.Price(*rec.Prices[i])
	if !ok {
		return e, fmt.Errorf("price %v is impossible", *rec.Prices[i])
	}
	e.says |= saysSpot
	e.spot = m
	return e, nil
}

// begun matches the name of a folder of recordings: the provider, and the date of the start with
// the month first.
var begun = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([a-z]+)-(\d\d-\d\d-\d{4})$`) })

// sampledMarket returns the market of the source and the start of its recording.
func (im *importer) sampledMarket() (market int32, begin policy.Time, err error) {
	provider, begin := im.o.Provider, im.o.From
	path, err := filepath.Abs(im.path)
	if err != nil {
		return market, 0, err
	}
	for folder := filepath.Dir(path); folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		m := begun().FindStringSubmatch(filepath.Base(folder))
		if m == nil {
			continue
		}
		provider = cmp.Or(provider, m[1])
		if day, err := time.Parse("01-02-2006", m[2]); err == nil && begin == 0 {
			begin = policy.TimeOf(day)
			im.warn("the start hour of recordings of %s is unknown: 00:00 UTC is used", filepath.Base(folder))
		}
		break
	}
	if begin == 0 {
		return market, 0, fmt.Errorf("%w: neither a folder like aws-02-15-2023 nor an option gives its start",
			trace.ErrUnnamed)
	}
	zone, kind, ok := strings.Cut(baseName(im.path), "_")
	zone = cmp.Or(im.o.Zone, zone)
	if !ok && (im.o.Zone == "" || im.o.Type == "") {
		return market, 0, fmt.Errorf("%w: its name is not like us-east-1a_v100_1.json and tells no market", trace.ErrUnnamed)
	}
	provider = cmp.Or(provider, catalog.AWS)
	name, err := im.typeNamed(provider, kind)
	if err != nil {
		return market, 0, err
	}
	market, err = im.market(provider, "", nil, []byte(zone), []byte(name), nil)
	if err != nil {
		return market, 0, fmt.Errorf("%w: %w", trace.ErrNoRegion, err)
	}
	return market, begin, nil
}

// baseName returns the name of a file without folders and extensions.
func baseName(path string) string {
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".zst")
	return strings.TrimSuffix(name, filepath.Ext(name))
}

// typeNamed returns the instance type that a recording calls kind.
func (im *importer) typeNamed(provider, kind string) (string, error) {
	if im.o.Type != "" {
		return im.o.Type, nil
	}
	if name, ok := knownKinds[provider+"/"+strings.ToLower(kind)]; ok {
		return name, nil
	}
	if _, ok := catalog.Lookup(provider, kind); ok {
		return kind, nil
	}
	return "", fmt.Errorf("%w: %q is not a known instance type of %s", trace.ErrUnnamed, kind, provider)
}

// fleet reads the events of a fleet of constant size. Each row contains the milliseconds since the
// start, "add" or "remove", and the name of a node. The owner of the fleet requested a node
// whenever one was missing. The market is therefore available from the launch of a node until a
// node is reclaimed, and then unavailable until the next launch. Whether it was available while the
// fleet was complete and no node was requested is unknown.
func (im *importer) fleet(r io.Reader) error {
	market, err := im.fleetMarket()
	if err != nil {
		return err
	}
	nodes := map[string]bool{}
	last := policy.Time(0)
	begin := len(im.events)
	err = eachLine(r, func(line int, row []byte) error {
		im.report.Rows++
		e, err := fleetEvent(row, nodes, &last)
		if err != nil {
			return im.bad(line, err)
		}
		e.market = market
		e.at = im.o.From + last
		if k := len(im.events) - 1; k >= begin && im.events[k].at == e.at { // several nodes at once
			im.report.Repeats++
			im.events[k].available = e.available
			return nil
		}
		im.add(e)
		return nil
	})
	minute := policy.Time(time.Minute / time.Millisecond)
	whole := true
	for i := range im.events[begin:] {
		whole = whole && (im.events[begin+i].at-im.o.From)%minute == 0
	}
	// If all events of a fleet are at whole minutes, its market was observed once per minute.
	for i := range im.events[begin:] {
		if e := &im.events[begin+i]; whole && e.at > im.o.From {
			e.gap = int32(time.Minute / time.Second)
		}
	}
	return err
}

// fleetMarket returns the market of a fleet. Its region and start are in the options, since the
// file does not contain them.
func (im *importer) fleetMarket() (market int32, err error) {
	provider := cmp.Or(im.o.Provider, catalog.AWS)
	zone := cmp.Or(im.o.Zone, im.o.Region)
	switch {
	case zone == "":
		return market, fmt.Errorf("%w: the events of a fleet name none", trace.ErrNoRegion)
	case im.o.From == 0:
		return market, fmt.Errorf("%w: the events of a fleet have no start time", trace.ErrUnnamed)
	}
	kind, _, _ := strings.Cut(baseName(im.path), "-")
	name, err := im.typeNamed(provider, kind)
	if err != nil {
		return market, err
	}
	market, err = im.market(provider, "", []byte(im.o.Region), []byte(zone), []byte(name), nil)
	if err != nil {
		err = fmt.Errorf("%w: %w", trace.ErrNoRegion, err)
	}
	return market, err
}

// fleetEvent reads a row. Nodes are the present nodes, and last is the time of the previous row; it
// updates both.
func fleetEvent(row []byte, nodes map[string]bool, last *policy.Time) (e event, err error) {
	f := splitRow(row, ',', nil)
	if len(f) != 3 {
		return e, fmt.Errorf("%d fields instead of 3", len(f))
	}
	at, err := strconv.ParseInt(string(f[0]), 10, 64)
	if err != nil || at < 0 || at > int64(trace.TimeMax) {
		return e, fmt.Errorf("time %q is not a number of milliseconds", f[0])
	}
	if policy.Time(at) < *last {
		return e, fmt.Errorf("time %d ms after %d ms", at, int64(*last))
	}
	node, there := string(f[2]), nodes[string(f[2])]
	switch add := bytes.Equal(f[1], []byte("add")); {
	case !add && !bytes.Equal(f[1], []byte("remove")):
		return e, fmt.Errorf("event %q is neither add nor remove", f[1])
	case add && there:
		return e, fmt.Errorf("node %q is added and was there", node)
	case !add && !there:
		return e, fmt.Errorf("node %q is removed and was not there", node)
	case add:
		nodes[node], e.available = true, 1
	default:
		delete(nodes, node)
	}
	*last = policy.Time(at)
	e.says = saysAvailable
	return e, nil
}
