package fake

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/scenarios/chance"
)

// A Zone is an availability zone.
type Zone struct{ Name, ID string }

// An Event is a price that was published, which may be the one in force
// already.
type Event struct {
	At                  time.Time
	Zone, Type, Product string // the zone by its name
	Price               string // in dollars, as AWS writes it

	// Published is when the event can first be seen; zero means at once.
	Published time.Time
}

// A Region is what one region reports.
type Region struct {
	Zones []Zone

	// Events are ascending by time.
	Events []Event

	// Kinds are the types that EC2 describes.
	Kinds []Kind

	// OnDemand is the on-demand price by type, in dollars.
	OnDemand map[string]string

	// Bands are the interruption bands and Scores the placement scores by
	// type, these by zone ID.
	Bands  map[string]int
	Scores map[string]map[string]int
}

// A State is the truth that the server answers from.
type State struct{ Regions map[string]*Region }

// A Shape says what a drawn state is like.
type Shape struct {
	Seed    uint64
	Regions []string
	Zones   int
	Types   []string

	// From and Until are the span of the events.
	From, Until time.Time

	// PerDay is the mean number of events of a market and day, and Repeats the
	// share of them that repeat the price.
	PerDay, Repeats float64
}

// Linux and Windows are products.
const (
	Linux   = "Linux/UNIX"
	Windows = "Windows"
)

// Draw returns a state.
func Draw(shape Shape) *State {
	s := &State{Regions: map[string]*Region{}}
	for _, name := range shape.Regions {
		r := &Region{OnDemand: map[string]string{}, Bands: map[string]int{}, Scores: map[string]map[string]int{}}
		for z := range shape.Zones {
			// Names and IDs do not run alike, as in a real account.
			r.Zones = append(r.Zones, Zone{
				Name: name + string(rune('a'+z)),
				ID:   fmt.Sprintf("%s-az%d", name, shape.Zones-z),
			})
		}
		for _, kind := range shape.Types {
			key := chance.New(shape.Seed, "type", name+" "+kind)
			r.OnDemand[kind] = strconv.FormatFloat(0.05+key.At1(0).Float(), 'f', 10, 64)
			r.Bands[kind] = key.At1(1).IntN(5)
			r.Scores[kind] = map[string]int{}
			for i, z := range r.Zones {
				r.Scores[kind][z.ID] = 1 + key.At2(2, uint64(i)).IntN(10)
				for _, product := range []string{Linux, Windows} {
					r.Events = append(r.Events, shape.events(name, z.Name, kind, product)...)
				}
			}
		}
		slices.SortStableFunc(r.Events, func(a, b Event) int { return a.At.Compare(b.At) })
		s.Regions[name] = r
	}
	return s
}

// events draws the events of one market. The first is before the span.
func (shape *Shape) events(region, zone, kind, product string) []Event {
	key := chance.New(shape.Seed, "events", region+" "+zone+" "+kind+" "+product)
	at := shape.From.Add(-time.Duration(key.At1(0).IntN(48*3600)) * time.Second)
	price := 0.01 + key.At1(1).Float()/10
	var all []Event
	for n := uint64(2); at.Before(shape.Until); n++ {
		all = append(all, Event{At: at, Zone: zone, Type: kind, Product: product,
			Price: strconv.FormatFloat(price, 'f', 6, 64)})
		if key.At2(n, 0).Float() >= shape.Repeats {
			price = max(0.001, price+(key.At2(n, 1).Float()-0.5)/50)
		}
		gap := key.At2(n, 2).Exp1() * float64(24*time.Hour) / shape.PerDay
		at = at.Add(max(time.Second, time.Duration(gap).Truncate(time.Second)))
	}
	return all
}

// zone returns a zone by its name.
func (r *Region) zone(name string) Zone {
	for _, z := range r.Zones {
		if z.Name == name {
			return z
		}
	}
	return Zone{Name: name}
}

// market names the market of an event.
func (e *Event) market() string { return e.Zone + " " + e.Type + " " + e.Product }

func compareEvents(a, b Event) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.market(), b.market()), cmp.Compare(a.Price, b.Price))
}
