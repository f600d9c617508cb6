package fake

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// The lifecycle states of an instance that the server goes through, in the words
// of the Auto Scaling API.
const (
	Pending         = "Pending"
	PendingWait     = "Pending:Wait"
	InService       = "InService"
	Terminating     = "Terminating"
	TerminatingWait = "Terminating:Wait"
)

// A Group is an Auto Scaling group as a test describes it, and as it is read
// back.
type Group struct {
	Name              string
	Min, Max, Desired int
	Zones, Types      []string

	// OnDemandPercent is the part that is bought on demand: 100 for a group of
	// on-demand instances, 0 for one of spot. Mixed says that it is stated in a
	// mixed-instances policy with an override per type; else it is one in the
	// launch template, which names the first type.
	OnDemandPercent int
	Mixed           bool

	Tags      map[string]string
	Suspended []string

	// NewProtected protects every new instance from scale-in. LaunchHook keeps
	// one in Pending:Wait until [Server.Complete], and TerminationHook is shown to
	// callers that list the hooks, and delays the end of an instance by HookDelay.
	NewProtected                bool
	LaunchHook, TerminationHook bool

	// Nodegroup is the managed node group that the group belongs to, and Cluster
	// its cluster; empty for a group of its own.
	Nodegroup, Cluster string

	Instances []Instance
}

// An Instance is one of a group.
type Instance struct {
	ID, Zone, Type, State string
	Spot, Protected       bool
	Launched              time.Time

	due time.Time // when its state changes
}

// clone returns a copy of g that shares nothing that changes.
func (g *Group) clone() Group {
	c := *g
	c.Tags, c.Suspended, c.Instances = maps.Clone(g.Tags), slices.Clone(g.Suspended), slices.Clone(g.Instances)
	return c
}

// live returns how many instances g has that are not ending.
func (g *Group) live() int {
	n := 0
	for i := range g.Instances {
		if !g.Instances[i].ending() {
			n++
		}
	}
	return n
}

func (i *Instance) ending() bool { return i.State == Terminating || i.State == TerminatingWait }

func (g *Group) find(id string) *Instance {
	for i := range g.Instances {
		if g.Instances[i].ID == id {
			return &g.Instances[i]
		}
	}
	return nil
}

// byZone counts the instances that are not ending in each zone of g.
func (g *Group) byZone() map[string]int {
	n := map[string]int{}
	for i := range g.Instances {
		if x := &g.Instances[i]; !x.ending() {
			n[x.Zone]++
		}
	}
	return n
}

// zones returns the zones of g, those with the fewest instances first.
func (g *Group) zones() []string {
	n := g.byZone()
	zones := slices.Clone(g.Zones)
	slices.SortStableFunc(zones, func(a, b string) int { return n[a] - n[b] })
	return zones
}

// A held is a group with the state that the server keeps for it.
type held struct {
	Group
	activities []Activity // the newest first

	// reactAt is when the group next launches or ends instances; rebalanceAt when
	// it evens out its zones. Zero when nothing has to change.
	reactAt, rebalanceAt time.Time

	past   []past
	status string    // of its managed node group
	until  time.Time // of that status
	token  string    // of the update before
	ngTags map[string]string
}

// A past is a group as it was from an instant on.
type past struct {
	at    time.Time
	group Group
}

// An Activity is a scaling activity.
type Activity struct {
	ID, Status, Description, Cause, Message, Zone, Instance string
	Start, End                                              time.Time
}

// nextSpot reports whether the next instance of g is bought as spot.
func (g *Group) nextSpot() bool {
	onDemand := 0
	for i := range g.Instances {
		if !g.Instances[i].Spot && !g.Instances[i].ending() {
			onDemand++
		}
	}
	return onDemand*100 >= g.OnDemandPercent*(g.live()+1)
}

// A groupSim is the groups, and does with time what Auto Scaling does. Who uses it holds the
// lock of the server.
type groupSim struct {
	delays *Delays
	faults *Faults
	region string

	clock  time.Time
	byName map[string]*held
	shut   map[string]bool // markets without capacity
	ended  []string
	serial int
	draws  uint64
}

// react lets g do what is due at now.
func (sim *groupSim) react(g *held) {
	sim.age(g)
	missing := g.Desired - g.live()
	if missing == 0 {
		g.reactAt = time.Time{}
		sim.rebalance(g)
		return
	}
	if g.reactAt.IsZero() {
		g.reactAt = sim.clock.Add(sim.delays.Start)
	}
	if g.reactAt.After(sim.clock) {
		return
	}
	g.reactAt = time.Time{}
	for ; missing > 0; missing-- {
		if !sim.launch(g, g.zones(), "a difference between desired and actual capacity") {
			g.reactAt = sim.clock.Add(sim.delays.Retry)
			return
		}
	}
	for ; missing < 0; missing++ {
		sim.scaleIn(g, "")
	}
}

// age moves instances on whose time has come.
func (sim *groupSim) age(g *held) {
	g.Instances = slices.DeleteFunc(g.Instances, func(i Instance) bool { return i.ending() && !i.due.After(sim.clock) })
	for k := range g.Instances {
		i := &g.Instances[k]
		if i.State != Pending || i.due.After(sim.clock) {
			continue
		}
		i.State = InService
		if g.LaunchHook {
			i.State = PendingWait
		}
		for a := range g.activities {
			if g.activities[a].Instance == i.ID && g.activities[a].Status == "InProgress" {
				g.activities[a].Status, g.activities[a].End = "Successful", sim.clock
			}
		}
	}
}

// launch starts one instance in the first of the zones with capacity.
func (sim *groupSim) launch(g *held, zones []string, cause string) bool {
	spot := g.nextSpot()
	for _, z := range zones {
		for _, t := range g.Types {
			if sim.shut[Market(z, t, spot)] {
				continue
			}
			sim.serial++
			i := Instance{ID: fmt.Sprintf("i-%08x%09x", uint32(portable.HashString(sim.region)), sim.serial), Zone: z, Type: t,
				State: Pending, Spot: spot,
				Protected: g.NewProtected, Launched: sim.clock, due: sim.clock.Add(sim.delays.Boot)}
			g.Instances = append(g.Instances, i)
			sim.begin(g, Activity{Status: "InProgress", Description: "Launching a new EC2 instance: " + i.ID, Cause: cause,
				Zone: z, Instance: i.ID})
			return true
		}
	}
	z, t := zones[0], g.Types[0]
	message := fmt.Sprintf("We currently do not have sufficient %s capacity in the Availability Zone you requested (%s). "+
		"Our system will be working on provisioning additional capacity. Launching EC2 instance failed.", t, z)
	if spot {
		message = "Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due to your request configuration. " +
			"Please adjust your request and try again. Launching EC2 instance failed."
	}
	sim.begin(g, Activity{Status: "Failed", Description: "Launching a new EC2 instance.  Status Reason: " + message,
		Cause: cause, Message: message, Zone: z, End: sim.clock})
	return false
}

// begin writes down an activity.
func (sim *groupSim) begin(g *held, a Activity) {
	sim.serial++
	a.ID, a.Start = fmt.Sprintf("%08x-0000-4000-8000-%012x", sim.serial, sim.serial), sim.clock
	a.Cause = "At " + sim.clock.UTC().Format(time.RFC3339) + " an instance was started or ended in response to " +
		a.Cause + "."
	g.activities = slices.Insert(g.activities, 0, a)
}

// scaleIn ends an instance of g that is not protected, in zone if that is
// named. Which one is drawn, pending ones included.
func (sim *groupSim) scaleIn(g *held, zone string) {
	var open []int
	for k := range g.Instances {
		if i := &g.Instances[k]; !i.ending() && !i.Protected && (zone == "" || i.Zone == zone) {
			open = append(open, k)
		}
	}
	if len(open) == 0 {
		return
	}
	sim.draws++
	k := open[chance.New(sim.faults.Seed, "victim", g.Name).At1(sim.draws).IntN(len(open))]
	sim.end(g, &g.Instances[k], "a difference between desired and actual capacity")
}

// end starts the termination of an instance.
func (sim *groupSim) end(g *held, i *Instance, cause string) {
	sim.ended = append(sim.ended, i.ID)
	i.State, i.due = Terminating, sim.clock.Add(sim.delays.End)
	if g.TerminationHook {
		i.State, i.due = TerminatingWait, i.due.Add(sim.delays.Hook)
	}
	sim.begin(g, Activity{Status: "InProgress", Description: "Terminating EC2 instance: " + i.ID, Cause: cause,
		Zone: i.Zone, Instance: i.ID})
}

// rebalance evens out the zones of g when they differ by more than one instance
// and the process is not suspended: it launches where there are few, and ends one
// where there are many.
func (sim *groupSim) rebalance(g *held) {
	zones := g.zones()
	n := g.byZone()
	if len(zones) < 2 || n[zones[len(zones)-1]]-n[zones[0]] < 2 || slices.Contains(g.Suspended, "AZRebalance") {
		g.rebalanceAt = time.Time{}
		return
	}
	if g.rebalanceAt.IsZero() {
		g.rebalanceAt = sim.clock.Add(sim.delays.Rebalance)
	}
	if g.rebalanceAt.After(sim.clock) {
		return
	}
	g.rebalanceAt = time.Time{}
	if sim.launch(g, zones[:1], "an unbalanced group") {
		sim.scaleIn(g, zones[len(zones)-1])
	}
}

// Market names what may be without capacity.
func Market(zone, kind string, spot bool) string {
	return zone + "/" + kind + "/" + strconv.FormatBool(spot)
}

// keep remembers how all groups are now, for reads that are old.
func (sim *groupSim) keep() {
	if sim.faults.Stale == 0 {
		return
	}
	for _, g := range sim.byName {
		g.past = append(g.past, past{sim.clock, g.clone()})
		if len(g.past) > 8 {
			g.past = slices.Delete(g.past, 0, 1)
		}
	}
}

func (sim *groupSim) setShut(shut bool, markets []string) {
	for _, m := range markets {
		sim.shut[m] = shut
	}
}
