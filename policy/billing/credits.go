package billing

import (
	"math/bits"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// creditsKept is the time for which a node earns credits at its baseline before they stop accruing,
// and the time whose credits it may spend in advance before it is charged: credits expire after 24
// hours.
const creditsKept = 24 * time.Hour

// A CreditMeter counts the CPU credits of one node of a burstable type as the EC2 user guide
// describes ("Key concepts for burstable performance instances", "Unlimited mode for burstable
// performance instances"). Usage is assumed to be constant between changes. A node earns its
// baseline and spends what it uses. Without credits an unlimited node runs into debt, up to what it
// earns in 24 hours. Usage beyond that is charged when it occurs, and the debt when the node ends.
// A standard node is slowed down to its baseline.
//
// Credits are in thousandths of a vCPU × milliseconds.
type CreditMeter struct {
	terms  *policy.CPUCredits
	most   int64 // capacity of the node in thousandths of a vCPU
	window Span

	since policy.Time
	use   int64 // in thousandths of a vCPU

	// launch is the rest of the credits granted at launch. balance is the credits earned and not
	// spent; if negative, the debt.
	launch, balance int64

	charged int64
	slowed  time.Duration
}

// NewCreditMeter returns the meter of a node of type t that is launched at the given time. Only
// amounts that become due within window are charged.
func NewCreditMeter(t *policy.InstanceType, at policy.Time, window Span) CreditMeter {
	m := CreditMeter{terms: &t.Credits, most: 1000 * t.VCPU, window: window, since: at}
	if t.Credits.Standard {
		m.launch = t.Credits.Launch * 1000 * time.Minute.Milliseconds()
	}
	return m
}

// Use adds d thousandths of a core to the usage of the node's pods from the given time on.
func (m *CreditMeter) Use(at policy.Time, d int64) {
	m.settle(at)
	m.use += d
}

// Using returns the current usage of the node's pods, in thousandths of a core.
func (m *CreditMeter) Using() int64 { return m.use }

// Charged returns the amount charged up to the given time, which must not be before the last
// change.
func (m *CreditMeter) Charged(at policy.Time) policy.Money {
	x := *m
	x.settle(at)
	return x.price(x.charged)
}

// End returns the amount charged for a node that ends at the given time, including its debt, and
// for how long it was slowed down.
func (m *CreditMeter) End(at policy.Time) (policy.Money, time.Duration) {
	x := *m
	if x.settle(at); at <= x.window.From {
		return 0, 0
	}
	return x.price(x.charged + max(0, -x.balance)), x.slowed
}

// price returns the price of credits, rounded half up to a micro-dollar.
func (m *CreditMeter) price(credits int64) policy.Money {
	high, low := bits.Mul64(uint64(credits), uint64(m.terms.Surplus))
	low, carry := bits.Add64(low, 1000*msPerHour/2, 0)
	price, _ := bits.Div64(high+carry, low, 1000*msPerHour)
	return policy.Money(price)
}

// settle counts credits up to the given time, which must not be before the last change. What was
// charged before the window is discarded.
func (m *CreditMeter) settle(at policy.Time) {
	if begin := m.window.From; m.since < begin {
		m.spend(min(begin, at))
		m.charged, m.slowed = 0, 0
	}
	m.spend(at)
}

// spend counts the credits earned and used up to the given time.
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
