package cluster

import (
	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

var _ backend.Sink = (*Observer)(nil)

// SetMachine implements [backend.Sink].
func (o *Observer) SetMachine(from string, m backend.Machine) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.nodes.setMachine(from, m)
}

// DropMachine implements [backend.Sink].
func (o *Observer) DropMachine(from, name string) {
	at := o.clock.wall()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.nodes.dropMachine(from, name, at)
}

// Notice implements [backend.Sink].
func (o *Observer) Notice(n backend.Notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.nodes.notice(n)
}

// Meet implements [backend.Sink]. Launches and reclaims are counted from the nodes, so that each
// counts once whichever backend reports it. Meet therefore ignores them, and counts only the events
// that no node shows.
func (o *Observer) Meet(e backend.Event) {
	switch e.Kind {
	case backend.MetLaunch, backend.MetReclaim:
		return
	case backend.MetRefusal:
		o.mu.Lock()
		o.pools.refused[e.Pool] = max(o.pools.refused[e.Pool], o.clock.clamp(e.At))
		o.mu.Unlock()
	}
	o.markets.book.Meet(e)
	o.Wake(backend.WakeRefused)
}

// SetSteer implements [backend.Sink].
func (o *Observer) SetSteer(pool string, s policy.SteerState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s.Since = o.clock.clamp(s.Since)
	o.pools.steers[pool] = s
}
