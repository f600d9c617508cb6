package importer

import (
	"fmt"
	"strconv"

	"github.com/spotter-dev/spotter/scenarios/trace"
)

// depth sets the numbers of requested and of launched nodes.
func (e *event) depth(requested, launched []byte) error {
	n, err := strconv.ParseInt(string(requested), 10, 32)
	if err != nil || n < 1 || n > trace.RequestedMax {
		return fmt.Errorf("requested %q is not a number of nodes from 1 to %d", requested, trace.RequestedMax)
	}
	k, err := strconv.ParseInt(string(launched), 10, 32)
	if err != nil || k < 0 || k > n {
		return fmt.Errorf("launched %q is not a number of nodes from 0 to the %d requested", launched, n)
	}
	e.says |= saysAvailable | saysDepth
	e.requested, e.launched, e.available = int32(n), int32(k), int8(min(k, 1))
	return nil
}

// noteProbes sets the time since the previous probe of the market for each probe of depth that
// lacks it. Events must be ordered by market and time.
func noteProbes(events []event) {
	probe := -1 // previous probe of the market
	for i := range events {
		e := &events[i]
		if i == 0 || e.market != events[i-1].market {
			probe = -1
		}
		if e.says&saysDepth == 0 {
			continue
		}
		if probe >= 0 && e.gap == 0 {
			e.gap = int32(min(int64(e.at-events[probe].at)/1000, trace.ProbeGapMax))
		}
		probe = i
	}
}

// depthRow returns the event of a row with numbers of nodes. The instance type is in a column or in
// the options.
func (im *importer) depthRow(field func(role) []byte, l *layout) (e event, err error) {
	if e.at, err = im.instant(field(roleTime)); err != nil {
		return e, err
	}
	kind := field(roleType)
	if len(kind) == 0 {
		kind = []byte(im.o.Type)
	}
	if e.market, err = im.market("", l.provider, field(roleRegion), field(roleZone), kind, nil); err != nil {
		return e, err
	}
	return e, e.depth(field(roleRequested), field(roleLaunched))
}
