package run

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/internal/bundles"
	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// A graphOf answers all outputs with one number, fails, panics, or hangs until it is
// let go.
type graphOf struct {
	mu     sync.Mutex
	answer float32
	err    error
	panics bool
	hangs  chan struct{}
	calls  int
}

func (g *graphOf) Run(_ int, _ []float32, out [][]float32) error {
	g.mu.Lock()
	g.calls++
	answer, err, panics, hangs := g.answer, g.err, g.panics, g.hangs
	g.mu.Unlock()
	if hangs != nil {
		<-hangs
	}
	if panics {
		panic("a graph that is broken")
	}
	for _, o := range out {
		for i := range o {
			o[i] = answer
		}
	}
	return err
}

func (g *graphOf) Close() error { return nil }

func (g *graphOf) set(f func(*graphOf)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(g)
}

// bundleFor returns a bundle for m5 of which scores are asked as of one of the agent.
func bundleFor(scores, values models.Session) *bundles.Loaded {
	net := func(width int, outputs ...string) *models.Net {
		n := &models.Net{Model: &models.Model{Graph: "graph", Outputs: map[string]string{}}, Width: width}
		for _, name := range outputs {
			n.Model.Outputs[name] = name
			n.Outputs, n.Widths = append(n.Outputs, models.Tensor{Name: name}), append(n.Widths, 1)
		}
		return n
	}
	actions := net(13, "values")
	actions.Widths[0] = models.ActionCount
	return &bundles.Loaded{ForecasterSession: scores, ActionsSession: values, Bundle: &models.Bundle{
		Manifest: &models.Manifest{Confidence: 0.9}, Scope: models.Scope{Cloud: "aws", Families: []string{"m5"}}, Fingerprint: "f00",
		Forecaster: net(120, "capacity", "runtime"), Actions: actions,
	}}
}

// A modelStage is a forecaster with bundles that do as the test says.
type modelStage struct {
	*liveModel
	clock  *clocktesting.FakeClock
	scores *graphOf
	broken map[string]error // by folder
	opened []string
}

// anyModels returns a runner of a controller whose pools may name models.
func anyModels() *runner.Runner {
	r := runner.New()
	r.Models = "models"
	return r
}

func newModelStage(t *testing.T, policies string) *modelStage {
	t.Helper()
	m := &modelStage{clock: clocktesting.NewFakeClock(policytest.Epoch.Std()), scores: &graphOf{answer: 0.25}, broken: map[string]error{}}
	l, err := newLiveModel(modelConfig{Policy: policies, Late: time.Second, Clock: m.clock,
		Log: slog.New(slog.DiscardHandler), Make: anyModels().LivePolicy(policies), Open: func(dir string) (*bundles.Loaded, error) {
			m.opened = append(m.opened, dir)
			if err := m.broken[dir]; err != nil {
				return nil, err
			}
			return bundleFor(m.scores, &graphOf{answer: 3}), nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	m.liveModel = l
	return m
}

// stall returns a snapshot of pools with these policies, which buy one market of m5.
func stall(after time.Duration, policies ...string) *policy.Snapshot {
	s := &policy.Snapshot{Now: policytest.Epoch.Add(after), Zones: []string{"a"}}
	s.Types = []policy.InstanceType{{Provider: "aws", Family: "m5", Name: "m5.large", VCPU: 2}}
	s.Markets = []policy.Market{{Name: "m5", Provider: "aws", Capacity: policy.Spot, Offered: true, Band: 1,
		Price: policy.Dollars(0.2), OnDemand: policy.Dollars(1)}}
	for i, p := range policies {
		s.Pools = append(s.Pools, policy.Pool{ID: policy.PoolID(i), Name: string(rune('a' + i)), Policy: p,
			Markets: []policy.MarketID{0}, Mode: policy.ModeActive})
	}
	return s
}

// condition returns the condition of a pool.
func (m *modelStage) condition(t *testing.T, pool string) metav1.Condition {
	t.Helper()
	all := m.Conditions(pool)
	if len(all) != 1 || all[0].Type != ConditionModel {
		t.Fatalf("conditions of %s: %+v", pool, all)
	}
	return all[0]
}

// holds fails the test unless a forecast went as it should: by whom, and what is reported.
func (m *modelStage) holds(t *testing.T, what string, s *policy.Snapshot, source policy.ForecastSource, reason string) {
	t.Helper()
	err := m.Forecast(s, &policy.Memory{})
	if wrong := source != policy.SourceModel && reason != modelNoScore; (err != nil) != wrong {
		t.Errorf("%s: error %v", what, err)
	}
	if got := s.Markets[0].Forecast.Source; got != source {
		t.Errorf("%s: the forecast is of %v, want %v", what, got, source)
	}
	if s.Markets[0].Forecast.Hazard <= 0 {
		t.Errorf("%s: there is no forecast: %+v", what, s.Markets[0].Forecast)
	}
	if c := m.condition(t, "a"); c.Reason != reason ||
		(c.Status == metav1.ConditionTrue) != (source == policy.SourceModel) || c.Message == "" {
		t.Errorf("%s: condition %+v, want %s", what, c, reason)
	}
}

// TestLiveModel scores with the bundle that --policies or a pool names, and values
// actions where the policy reads them.
func TestLiveModel(t *testing.T) {
	for _, c := range []struct {
		policies, pool string
		actions        int
	}{{"model:bundle=b", "", models.ActionCount}, {"manifest", "model:bundle=b", models.ActionCount}, {"manifest", "portfolio:bundle=b", 0}} {
		m, s := newModelStage(t, c.policies), stall(0, c.pool)
		m.holds(t, c.policies+" "+c.pool, s, policy.SourceModel, "Scored")
		if f := s.Markets[0].Forecast; f.Capacity != 0.25 || f.Confidence != 0.9 || len(s.Pools[0].Actions) != c.actions {
			t.Errorf("%+v: forecast %+v, actions %v", c, f, s.Pools[0].Actions)
		}
	}
	m := newModelStage(t, "portfolio")
	if err := m.Forecast(stall(0, ""), &policy.Memory{}); err != nil || len(m.opened) != 0 ||
		len(m.Conditions("a")) != 0 || testutil.CollectAndCount(m) != 0 {
		t.Errorf("without a bundle: %v, opened %v, conditions %v", err, m.opened, m.Conditions("a"))
	}
}

// TestLiveModelFails keeps the closed form through all that can befall a bundle, says
// so, and takes the bundle up again when that is over.
func TestLiveModelFails(t *testing.T) {
	m := newModelStage(t, "manifest")
	const spec = "model:bundle=b"
	step := time.Duration(0)
	next := func() *policy.Snapshot { // at another price, since what was answered is not asked again
		step += time.Minute
		s := stall(step, spec)
		s.Markets[0].Price += policy.Money(step.Seconds())
		return s
	}
	for name, c := range map[string]struct {
		reason    string
		set, mend func(*graphOf)
		again     time.Duration
	}{
		"fails":  {modelFailed, func(g *graphOf) { g.err = errors.New("out of memory") }, func(g *graphOf) { g.err = nil }, 0},
		"lies":   {modelFailed, func(g *graphOf) { g.answer = 2 }, func(g *graphOf) { g.answer = 0.25 }, 0},
		"panics": {modelPanicked, func(g *graphOf) { g.panics = true }, func(g *graphOf) { g.panics = false }, modelRetry},
	} {
		m.scores.set(c.set)
		s := next()
		m.holds(t, name, s, policy.SourceClosedForm, c.reason)
		if s.Pools[0].Actions != nil {
			t.Errorf("%s: actions are valued: %v", name, s.Pools[0].Actions)
		}
		m.scores.set(c.mend)
		step += c.again
		m.holds(t, name+" no more", next(), policy.SourceModel, "Scored")
	}
	want := `
# HELP spotter_model_failures_total Steps at which a bundle that is named had no answer, by the reason.
# TYPE spotter_model_failures_total counter
spotter_model_failures_total{reason="Failed"} 2
spotter_model_failures_total{reason="Panicked"} 1
# HELP spotter_model_up 1 while forecasts come from the bundle that policies name, 0 while they come from the closed form.
# TYPE spotter_model_up gauge
spotter_model_up{bundle="b",fingerprint="f00"} 1
`
	if err := testutil.CollectAndCompare(m, strings.NewReader(want), "spotter_model_failures_total", "spotter_model_up"); err != nil {
		t.Error(err)
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(m)
	if problems, err := testutil.GatherAndLint(r); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

// TestLiveModelLate waits for a graph that hangs for as long as it may take and no
// longer, asks it nothing more until it has ended, and then takes it up again.
func TestLiveModelLate(t *testing.T) {
	m := newModelStage(t, "model:bundle=b")
	m.holds(t, "at first", stall(0, ""), policy.SourceModel, "Scored")
	letGo := make(chan struct{})
	m.scores.set(func(g *graphOf) { g.hangs, g.answer, g.calls = letGo, 0.5, 0 })
	s := stall(time.Hour, "")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.holds(t, "late", s, policy.SourceClosedForm, modelLate)
	}()
	for !m.clock.HasWaiters() {
		time.Sleep(time.Millisecond)
	}
	m.clock.Step(time.Second)
	<-ended
	m.holds(t, "still late", stall(2*time.Hour, ""), policy.SourceClosedForm, modelLate)
	m.scores.set(func(g *graphOf) {
		if g.calls != 1 {
			t.Errorf("a graph that hangs was asked %d times", g.calls)
		}
		g.hangs = nil
	})
	close(letGo)
	session := m.trained
	for m.trained == session && !errors.Is(m.Forecast(stall(3*time.Hour, ""), &policy.Memory{}), nil) {
		time.Sleep(time.Millisecond)
	}
	m.holds(t, "in time", stall(4*time.Hour, ""), policy.SourceModel, "Scored")
}

// TestLiveModelOpens tries again to open a bundle that is not there, after a while,
// and does not wait twice for a volume that hangs.
func TestLiveModelOpens(t *testing.T) {
	m := newModelStage(t, "manifest")
	m.broken["b"] = errors.New("MODEL_MANIFEST.json: no such file")
	m.holds(t, "missing", stall(0, "portfolio:bundle=b"), policy.SourceClosedForm, ReasonModelUnusable)
	delete(m.broken, "b")
	m.holds(t, "not tried again", stall(modelRetry-time.Second, "portfolio:bundle=b"), policy.SourceClosedForm, ReasonModelUnusable)
	m.holds(t, "there", stall(modelRetry, "portfolio:bundle=b"), policy.SourceModel, "Scored")
	if want := []string{"b", "b"}; !slices.Equal(m.opened, want) {
		t.Errorf("opened %v, want %v", m.opened, want)
	}

	letGo, wait := make(chan struct{}), m.Open
	m.Open = func(dir string) (*bundles.Loaded, error) { <-letGo; return wait(dir) }
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.holds(t, "hangs", stall(time.Hour, "portfolio:bundle=slow"), policy.SourceClosedForm, modelLate)
	}()
	for !m.clock.HasWaiters() {
		time.Sleep(time.Millisecond)
	}
	m.clock.Step(time.Second)
	<-ended
	m.holds(t, "still hangs", stall(time.Hour+1, "portfolio:bundle=slow"), policy.SourceClosedForm, modelLate)
	being := m.opening
	close(letGo)
	<-being.ended
	m.holds(t, "has come", stall(time.Hour+2, "portfolio:bundle=slow"), policy.SourceModel, "Scored")
}

// TestLiveModelFollowsPools takes the bundle that pools name now, none where two of
// them name two, and forgets one that is named no more.
func TestLiveModelFollowsPools(t *testing.T) {
	m := newModelStage(t, "manifest")
	m.holds(t, "one", stall(0, "portfolio:bundle=b", "spotvortex"), policy.SourceModel, "Scored")
	if len(m.Conditions("b")) != 0 {
		t.Errorf("a pool that names none has %+v", m.Conditions("b"))
	}
	m.holds(t, "two", stall(1, "portfolio:bundle=b", "model:bundle=c"), policy.SourceClosedForm, modelTwoBundles)
	if c := m.condition(t, "b"); c.Reason != modelTwoBundles ||
		!strings.Contains(c.Message, "b and c") && !strings.Contains(c.Message, "c and b") {
		t.Errorf("the other pool: %+v", c)
	}
	m.holds(t, "letters", stall(2, "portfolio:bundle=b", "spotvortex:compat=true:bundle=b"), policy.SourceClosedForm, modelTwoBundles)
	m.holds(t, "one cannot be made", stall(3, "portfolio:bundle=b", "static:bundle=c"), policy.SourceModel, "Scored")
	s := stall(4, "portfolio:bundle=b", "model:bundle=c")
	s.Pools[1].Mode = policy.ModeOff
	m.holds(t, "the other is off", s, policy.SourceModel, "Scored")
	s = stall(5, "portfolio:bundle=b")
	s.Markets[0].Offered = false
	m.holds(t, "no price", s, policy.SourceClosedForm, modelNoScore)
	if err := m.Forecast(stall(6, "portfolio"), &policy.Memory{}); err != nil {
		t.Error(err)
	}
	if c := m.condition(t, "a"); c.Status != metav1.ConditionFalse || c.Reason != "NotNamed" {
		t.Errorf("a pool that names none any more has %+v", c)
	}
}
