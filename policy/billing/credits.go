package billing

import (
	"math/bits"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// creditsKept is the time whose baseline a node earns at most, and may spend before it is
// charged: credits expire after 24 hours.
const creditsKept = 24 * time.Hour

// A CreditMeter counts the CPU credits of one node of a burstable type, as the user guide of
// EC2 has it ("Key concepts for burstable performance instances", "Unlimited mode for
// burstable performance instances"). Use is taken as constant between changes. A node earns
// its baseline and spends what it uses. Without credits an unlimited node goes into debt, up to
// what it earns in 24 hours; more is charged when it is spent, and the debt when the node ends.
// A standard node is slowed down to its baseline.
//
// Credits are in thousandths of a vCPU × milliseconds.
type CreditMeter struct {
	terms  *policy.CPUCredits
	most   int64 // the whole node, in thousandths of a vCPU
	window Span

	since policy.Time
	use   int64 // in thousandths of a vCPU

	// launch are credits that came with the launch. balance is what was earned and not spent,
	// below zero what was spent and not earned.
	launch, balance int64

	charged int64
	slowed  time.Duration
}

// NewCreditMeter returns the meter of a node of t that is launched at. Only what becomes due in
// the window is charged.
func NewCreditMeter(t *policy.InstanceType, at policy.Time, window Span) CreditMeter {
	m := CreditMeter{terms: &t.Credits, most: 1000 * t.VCPU, window: window, since: at}
	if t.Credits.Standard {
		m.launch = t.Credits.Launch * 1000 * time.Minute.Milliseconds()
	}
	return m
}

// Use adds d thousandths of a core to what the pods of the node use from at on.
func (m *CreditMeter) Use(at policy.Time, d int64) {
	m.settle(at)
	m.use += d
}

// Using returns what the pods of the node use now, in thousandths of a core.
func (m *CreditMeter) Using() int64 { return m.use }

// Charged returns what was charged by a time that is not before the last change.
func (m *CreditMeter) Charged(at policy.Time) policy.Money {
	x := *m
	x.settle(at)
	return x.price(x.charged)
}

// End returns what is charged for a node that ends at a time, its debt included, and for how
// long it was slowed down.
func (m *CreditMeter) End(at policy.Time) (policy.Money, time.Duration) {
	x := *m
	if x.settle(at); at <= x.window.From {
		return 0, 0
	}
	return x.price(x.charged + max(0, -x.balance)), x.slowed
}

// price returns what credits cost, rounded half up to one micro-dollar.
func (m *CreditMeter) price(credits int64) policy.Money {
	high, low := bits.Mul64(uint64(credits), uint64(m.terms.Surplus))
	low, carry := bits.Add64(low, 1000*msPerHour/2, 0)
	price, _ := bits.Div64(high+carry, low, 1000*msPerHour)
	return policy.Money(price)
}

// settle counts up to at, which is not before the last change.
func (m *CreditMeter) settle(at policy.Time) {
	if begin := m.window.From; m.since < begin {
		m.spend(min(begin, at))
		m.charged, m.slowed = 0, 0
	}
	m.spend(at)
}

// spend counts what is earned and used up to at.
func (m *CreditMeter) spend(at policy.Time) {
	ms := int64(at - m.since)
	m.since = at
	kept := m.terms.Baseline * creditsKept.Milliseconds()
	rate := m.terms.Baseline - min(m.use, m.most)
	if rate >= 0 {
		m.balance = min(m.balance+rate*ms, kept)
		return
	}
	first := min(m.launch, -rate*ms)
	m.launch -= first
	m.balance += rate*ms + first
	switch {
	case m.terms.Standard && m.balance < 0:
		m.slowed += time.Duration(m.balance/rate) * time.Millisecond
		m.balance = 0
	case m.balance < -kept:
		m.charged += -kept - m.balance
		m.balance = -kept
	}
}
