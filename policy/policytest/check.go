package policytest

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// Check reports the first rule that plan p for snapshot s breaks: what must
// hold of every plan of every policy, whatever it decided.
func Check(s *policy.Snapshot, p *policy.Plan) error {
	if p.Wake <= s.Now {
		return fmt.Errorf("wake %v is not after now, %v", p.Wake, s.Now)
	}
	for _, check := range [...]func(*policy.Snapshot, *policy.Plan) error{checkSteers, checkLaunches, checkDrains,
		checkDeletionCosts, checkBudgets, checkHolds} {
		if err := check(s, p); err != nil {
			return err
		}
	}
	return nil
}

func checkWhy(w policy.Why) error {
	if w.Reason == "" || w.Text == "" {
		return fmt.Errorf("the account %+v lacks a reason or a text", w)
	}
	return nil
}

func checkSteers(s *policy.Snapshot, p *policy.Plan) error {
	steered := make([]bool, len(s.Pools))
	for _, x := range p.Steers {
		name := s.Pools[x.Pool].Name
		switch {
		case steered[x.Pool]:
			return fmt.Errorf("steer %s: planned twice", name)
		case !(x.Share >= 0 && x.Share <= 1):
			return fmt.Errorf("steer %s: share %v is not in [0, 1]", name, x.Share)
		}
		steered[x.Pool] = true
		for _, m := range x.Markets {
			if !slices.Contains(s.Pools[x.Pool].Markets, m) {
				return fmt.Errorf("steer %s: market %s is not the pool's", name, s.Markets[m].Name)
			}
		}
		if err := checkWhy(x.Why); err != nil {
			return fmt.Errorf("steer %s: %w", name, err)
		}
	}
	return nil
}

func checkLaunches(s *policy.Snapshot, p *policy.Plan) error {
	var tokens []string
	for _, x := range p.Launches {
		name := s.Pools[x.Pool].Name
		if x.Token == "" || slices.Contains(tokens, x.Token) {
			return fmt.Errorf("launch in %s: token %q is empty or there twice", name, x.Token)
		}
		tokens = append(tokens, x.Token)
		if len(x.Markets) == 0 {
			return fmt.Errorf("launch in %s: no markets", name)
		}
		for _, m := range x.Markets {
			switch k := &s.Markets[m]; {
			case !slices.Contains(s.Pools[x.Pool].Markets, m):
				return fmt.Errorf("launch in %s: market %s is not the pool's", name, k.Name)
			case !k.Offered:
				return fmt.Errorf("launch in %s: market %s is not offered", name, k.Name)
			case k.Capacity != s.Markets[x.Markets[0]].Capacity:
				return fmt.Errorf("launch in %s: markets of two capacity types", name)
			}
		}
		if x.Replaces != policy.None && !s.Nodes[x.Replaces].Live() {
			return fmt.Errorf("launch in %s: replaces slot %d, which is empty", name, x.Replaces)
		}
		if err := checkWhy(x.Why); err != nil {
			return fmt.Errorf("launch in %s: %w", name, err)
		}
	}
	return nil
}

func checkDrains(s *policy.Snapshot, p *policy.Plan) error {
	drained := make([]bool, len(s.Nodes))
	for _, x := range p.Drains {
		n := &s.Nodes[x.Node]
		switch {
		case !n.Live():
			return fmt.Errorf("drain of slot %d, which is empty", x.Node)
		case drained[x.Node]:
			return fmt.Errorf("drain %s: planned twice", n.Name)
		case n.Pool == policy.None:
			return fmt.Errorf("drain %s: it belongs to no pool", n.Name)
		case n.Phase >= policy.NodeDraining:
			return fmt.Errorf("drain %s: it is %v already", n.Name, n.Phase)
		case n.ActedBy != policy.ActorNone && n.ActedBy != policy.ActorUs:
			return fmt.Errorf("drain %s: %v is at it", n.Name, n.ActedBy)
		case s.Pools[n.Pool].Mode == policy.ModeOff:
			return fmt.Errorf("drain %s: pool %s is off", n.Name, s.Pools[n.Pool].Name)
		}
		drained[x.Node] = true
		for _, token := range x.After {
			if !slices.ContainsFunc(p.Launches, func(l policy.Launch) bool { return l.Token == token }) {
				return fmt.Errorf("drain %s: waits for %q, which the plan does not launch", n.Name, token)
			}
		}
		if err := checkWhy(x.Why); err != nil {
			return fmt.Errorf("drain %s: %w", n.Name, err)
		}
	}
	return nil
}

func checkDeletionCosts(s *policy.Snapshot, p *policy.Plan) error {
	told := make([]bool, len(s.Nodes))
	for i := range p.DeletionCosts {
		x := &p.DeletionCosts[i]
		n := &s.Nodes[x.Node]
		switch {
		case !n.Live() || told[x.Node]:
			return fmt.Errorf("deletion-cost %s: slot %d is empty, or it is planned twice", n.Name, x.Node)
		case n.Pool == policy.None || s.Pools[n.Pool].Mode == policy.ModeOff:
			return fmt.Errorf("deletion-cost %s: it is in no pool, or in one that is off", n.Name)
		case !slices.ContainsFunc(s.Pods, func(p policy.Pod) bool { return x.Ranks(s, &p) }):
			return fmt.Errorf("deletion-cost %s: no pod of it would have another cost than %d", n.Name, x.Cost)
		}
		told[x.Node] = true
		if err := checkWhy(x.Why); err != nil {
			return fmt.Errorf("deletion-cost %s: %w", n.Name, err)
		}
	}
	return nil
}

func checkBudgets(s *policy.Snapshot, p *policy.Plan) error {
	known := func(name string) bool {
		return slices.ContainsFunc(s.Budgets, func(b policy.Budget) bool { return b.Name == name })
	}
	var gates []string
	for _, x := range p.Gates {
		if !known(x.Budget) || slices.Contains(gates, x.Budget) {
			return fmt.Errorf("gate %s: there is no such budget, or it is planned twice", x.Budget)
		}
		gates = append(gates, x.Budget)
		if err := checkWhy(x.Why); err != nil {
			return fmt.Errorf("gate %s: %w", x.Budget, err)
		}
	}
	for _, x := range p.Pauses {
		w := &s.Workloads[x.Workload]
		if w.Kind != policy.KindJob || x.Paused && !known(x.Budget) { // a job is also resumed without its budget
			return fmt.Errorf("pause %s: it is not a job, or there is no budget %s", w.Name, x.Budget)
		}
		if err := checkWhy(x.Why); err != nil {
			return fmt.Errorf("pause %s: %w", w.Name, err)
		}
	}
	evicted := make([]bool, len(s.Pods))
	for _, x := range p.Evicts {
		pod := &s.Pods[x.Pod]
		if pod.Phase != policy.PodStarting && pod.Phase != policy.PodReady || evicted[x.Pod] {
			return fmt.Errorf("evict %s: it is %v, or planned twice", pod.Name, pod.Phase)
		}
		evicted[x.Pod] = true
		if err := checkWhy(x.Why); err != nil {
			return fmt.Errorf("evict %s: %w", pod.Name, err)
		}
	}
	return nil
}

func checkHolds(_ *policy.Snapshot, p *policy.Plan) error {
	for _, x := range p.Holds {
		if err := checkWhy(x.Why); err != nil {
			return fmt.Errorf("hold: %w", err)
		}
	}
	return nil
}
