package billing

import (
	"math"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// nano is t3.nano: two vCPUs, each of which may be used for 5% of the time.
func nano() *policy.InstanceType {
	return &policy.InstanceType{VCPU: 2, Credits: policy.CPUCredits{Baseline: 100, Surplus: 50_000}}
}

// credit is one credit in the unit of the meter.
const credit = 1000 * 60_000

// TestCreditsOfUnlimited plays the first example of the user guide of EC2 ("Unlimited mode
// examples"), with its balance after each of its seven periods. In the fifth 304 credits are
// charged, precisely 303.6, which are 5.06 hours of a vCPU.
func TestCreditsOfUnlimited(t *testing.T) {
	m := NewCreditMeter(nano(), 0, Span{0, 1000 * hour})
	now, charged := policy.Time(0), policy.Money(0)
	for i, p := range []struct {
		hours   float64
		percent int64 // of both vCPUs, in tenths
		balance float64
		charged policy.Money
	}{
		{24, 0, 144, 0}, {12, 25, 144, 0}, {24, 70, 86.4, 0}, {12, 25, 122.4, 0}, {5, 1000, -144, 253_000}, {13, 50, -144,
			253_000}, {24, 0, 0, 253_000},
	} {
		m.Use(now, 2*p.percent-m.Using())
		now = now.Add(time.Duration(p.hours * float64(time.Hour)))
		m.Use(now, 0)
		if charged = m.Charged(now); m.balance != int64(math.Round(p.balance*credit)) || charged != p.charged {
			t.Errorf("P%d: %v credits and %v charged, want %v and %v", i+1, float64(m.balance)/credit, charged, p.balance, p.charged)
		}
	}
	if end, slowed := m.End(now); end != charged || slowed != 0 {
		t.Errorf("a node without debt ends with %v, slowed down for %v", end, slowed)
	}
}

// TestCreditsAtTheEnd: a node that ends pays its debt. A day of the whole t3.nano costs 2 × 24
// hours of a vCPU less the 5% that it earns, at $0.05: $2.28, and a minute of it $0.001583.
func TestCreditsAtTheEnd(t *testing.T) {
	for length, want := range map[time.Duration]policy.Money{24 * time.Hour: 2_280_000, time.Minute: 1583, 0: 0} {
		m := NewCreditMeter(nano(), 0, Span{0, 1000 * hour})
		m.Use(0, 9000) // no more than the node has
		if got, _ := m.End(policy.Time(0).Add(length)); got != want {
			t.Errorf("%v: %v, want %v", length, got, want)
		}
	}
}

// TestCreditsInWindow: what was charged before the window is not charged in it, and what was
// earned is. A node that ends before has no charge.
func TestCreditsInWindow(t *testing.T) {
	m := NewCreditMeter(nano(), 0, Span{48 * hour, 72 * hour})
	m.Use(0, 1100)
	if got := m.Charged(30 * hour); got != 0 {
		t.Errorf("%v is charged before the window", got)
	}
	if got, _ := m.End(48 * hour); got != 0 {
		t.Errorf("a node that ends before the window is charged %v", got)
	}
	// One vCPU beyond the baseline, and the debt of 24 hours of a tenth that it brought.
	if got, _ := m.End(50 * hour); got != 2*50_000+2.4*50_000 {
		t.Errorf("%v is charged, want $0.22", got)
	}
}

// TestCreditsOfStandard: t2.micro is launched with 30 credits. At full use, which takes 54 an hour
// more than it earns, they last 33 minutes and 20 seconds; then it is slowed down. Two hours
// without use earn it 12 more, for 13 minutes and 20 seconds.
func TestCreditsOfStandard(t *testing.T) {
	micro := &policy.InstanceType{VCPU: 1, Credits: policy.CPUCredits{Baseline: 100, Surplus: 50_000, Standard: true, Launch: 30}}
	m := NewCreditMeter(micro, 0, Span{0, 1000 * hour})
	m.Use(0, 1000)
	m.Use(1*hour, -1000)
	m.Use(3*hour, 1000)
	got, slowed := m.End(4 * hour)
	if want := 2*time.Hour - 33*time.Minute - 20*time.Second - 13*time.Minute - 20*time.Second; got != 0 || slowed.Round(time.Second) != want {
		t.Errorf("it is charged %v and slowed down for %v, want %v", got, slowed, want)
	}
}

// TestCreditsWithinBaseline: use up to the baseline costs nothing, however it varies below it.
func TestCreditsWithinBaseline(t *testing.T) {
	m := NewCreditMeter(nano(), 0, Span{0, 10_000 * hour})
	for i := range policy.Time(9000) {
		m.Use(i*hour, []int64{100, -60, 60, -100}[i%4])
		if got, slowed := m.End((i + 1) * hour); got != 0 || slowed != 0 {
			t.Fatalf("after %d hours: %v, %v", i, got, slowed)
		}
	}
}
