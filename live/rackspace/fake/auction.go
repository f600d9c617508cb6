package fake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
)

// Step brings the auctions, the machines and the Node objects of the cluster to
// now.
func (s *Server) Step(ctx context.Context, cluster client.Client) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, name := range s.sorted() {
		p := s.pools[name]
		s.auction(p, now)
		kept := p.servers[:0]
		for _, x := range p.servers {
			gone := x.taken != 0 && x.taken <= now
			if err := s.register(ctx, cluster, p, x, now, gone); err != nil {
				return err
			}
			if gone {
				l := p.life(x)
				l.Gone = x.taken
				s.ended = append(s.ended, l)
			} else {
				kept = append(kept, x)
			}
		}
		p.servers = kept
		if p.undone != 0 && len(p.servers) == 0 && now.Sub(p.undone) > s.state.Lag {
			delete(s.pools, name)
		}
	}
	return nil
}

func (s *Server) sorted() []string { return slices.Sorted(maps.Keys(s.pools)) }

// auction gives machines to a pool that bids enough, and notice to those of one
// that does not.
func (s *Server) auction(p *pool, now policy.Time) {
	if p.undone != 0 {
		for _, x := range p.servers {
			x.taken = now
		}
		return
	}
	c := s.class(p.spec.ServerClass)
	wins := p.kind != spotPools || c.price(now) <= p.bid
	for _, x := range p.servers {
		if !wins && x.taken == 0 {
			x.taken = now.Add(s.state.Notice)
			x.due = x.taken
		}
	}
	for wins && p.given() < p.spec.Desired && s.free(c) {
		p.serial++
		s.serial++
		p.servers = append(p.servers, &server{
			node: fmt.Sprintf("prod-instance-%06d", s.serial), uuid: fmt.Sprintf("00000000-0000-4000-8000-%012d", s.serial),
			won: now, joins: now.Add(s.state.Join),
		})
	}
}

// free reports whether a class has a machine left.
func (s *Server) free(c *Class) bool {
	n := 0
	for _, p := range s.pools {
		if p.spec.ServerClass == c.Name {
			n += len(p.servers)
		}
	}
	return c.Slots == 0 || n < c.Slots
}

// register makes and removes the Node object of a machine.
func (s *Server) register(ctx context.Context, cluster client.Client, p *pool, x *server, now policy.Time,
	gone bool) error {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: x.node}}
	if gone {
		if !x.registered {
			return nil
		}
		return client.IgnoreNotFound(cluster.Delete(ctx, n))
	}
	if x.registered || now < x.joins {
		return nil
	}
	x.registered = true
	kind := "spot"
	if p.kind != spotPools {
		kind = "ondemand"
	}
	n.CreationTimestamp = metav1.NewTime(now.Std())
	n.Labels = map[string]string{
		"servers.ngpc.rxt.io/class": p.spec.ServerClass, "servers.ngpc.rxt.io/type": kind, "nodepool.ngpc.rxt.io/name": p.name,
		"node.kubernetes.io/instance-type": "general1-2",
	}
	for k, v := range p.spec.CustomLabels {
		n.Labels[k] = v
	}
	n.Annotations = p.spec.CustomAnnotations
	n.Spec = corev1.NodeSpec{ProviderID: "openstack:///" + x.uuid, Taints: slices.Clone(p.spec.CustomTaints)}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return cluster.Create(ctx, n)
}

// Machines returns the running servers that were not outbid, by node pool.
func (s *Server) Machines() []Machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Machine
	for _, name := range s.sorted() {
		p := s.pools[name]
		for _, x := range p.servers {
			if x.taken == 0 {
				all = append(all, p.machine(x))
			}
		}
	}
	return all
}

func (p *pool) machine(x *server) Machine {
	return Machine{Pool: p.name, Node: x.node, Class: p.spec.ServerClass, Bid: p.bid, Labels: p.spec.CustomLabels}
}

// life returns what is known of a server while it runs.
func (p *pool) life(x *server) Life {
	return Life{Machine: p.machine(x), OnDemand: p.kind != spotPools, Won: x.won, Taken: x.due}
}

// Lives returns all servers that ever ran, those that are gone first.
func (s *Server) Lives() []Life {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.ended)
	for _, name := range s.sorted() {
		for _, x := range s.pools[name].servers {
			all = append(all, s.pools[name].life(x))
		}
	}
	return all
}

// Pools returns the names of the node pools that are not deleted, in order.
func (s *Server) Pools() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(s.sorted(), func(n string) bool { return s.pools[n].undone != 0 })
}

// SetPrice puts the auction of a class at a price from now on.
func (s *Server) SetPrice(class string, p policy.Money) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.class(class)
	c.Prices = append(c.Prices, Price{s.now(), p})
}

// Change edits the state between requests.
func (s *Server) Change(f func(*State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.state)
}

// AddPool makes a node pool as another tool or a person would.
func (s *Server) AddPool(name, cloudspace, class string, desired int, bid policy.Money, labels map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pools[name] = &pool{
		kind: spotPools, name: name, namespace: s.namespace(), bid: bid, made: s.now(),
		labels: map[string]string{cloudspaceLabel: cloudspace},
		spec: poolSpec{ServerClass: class, Desired: desired, CloudSpace: cloudspace,
			BidPrice: strings.TrimPrefix(bid.String(), "$"), CustomLabels: labels},
	}
}

// Remove deletes a node pool as a person would.
func (s *Server) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pools[name].undone = s.now()
}

// Scale sets the desired number of machines of a node pool, as a person would.
func (s *Server) Scale(name string, desired int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pools[name].spec.Desired = desired
}

func (s *Server) class(name string) *Class {
	for i := range s.state.Classes {
		if s.state.Classes[i].Name == name {
			return &s.state.Classes[i]
		}
	}
	return nil
}

func (s *Server) namespace() string {
	return strings.ReplaceAll(strings.ToLower(s.state.ID), "_", "-")
}
