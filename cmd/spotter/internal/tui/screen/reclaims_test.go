package screen

import (
	"strconv"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval/timeline"
)

// TestReclaimsAgree holds that notices and reclaims are the same figures wherever they are
// shown: in the result, which sim prints, on Savings, on Markets, and as what g n and g r
// go to.
func TestReclaimsAgree(t *testing.T) {
	some := false
	for _, policy := range []string{"static:share=0.7", "spot"} {
		v := sit(t, 120, 40)
		for v.play.shown().Name != policy {
			v.press("tab")
		}
		s := v.play.shown()
		for _, moment := range []string{"0", "L", "end"} {
			v.press(moment)
			now, k := v.play.time(), &s.frame.Costs
			markets := 0
			for _, row := range s.marketPane.table.Rows {
				n, err := strconv.Atoi(row[len(row)-1].Text)
				if err != nil {
					t.Fatal(err)
				}
				markets += n
			}
			if int64(markets) != k.Reclaims {
				t.Errorf("%s at %v: %d reclaims on Markets, %d on Savings", policy, now, markets, k.Reclaims)
			}
			for key, want := range map[string]int64{"r": k.Reclaims, "n": k.Notices} {
				if got := v.jumpsUntil(key); got != want {
					t.Errorf("%s until %v: g %s goes to %d, Savings has %d", policy, now, key, got, want)
				}
				v.play.stop(now)
				v.refresh()
			}
		}
		r, _, _ := s.Timeline.Ended()
		if k := &s.frame.Costs; k.Reclaims != r.Reclaims || k.Notices != r.Notices {
			t.Errorf("%s: %d notices, %d reclaims on Savings, the result has %d, %d", policy, k.Notices, k.Reclaims, r.Notices, r.Reclaims)
		}
		some = some || r.Reclaims > 0 && r.Notices != r.Reclaims
	}
	if !some {
		t.Error("no run has reclaims that are told from its notices")
	}
}

// jumpsUntil counts the nodes that g and a key go to within the window, up to the shown time.
func (v *viewer) jumpsUntil(key string) (n int64) {
	now, s := v.play.time(), v.play.shown()
	kind := timeline.Reclaimed
	if key == "n" {
		kind = timeline.Noticed
	}
	v.play.stop(s.from - 1)
	v.refresh()
	for {
		v.press("g", key)
		if strings.HasPrefix(v.prompt.note, "no ") || v.play.time() > now {
			return n
		}
		i, _ := s.Timeline.NextEvent(v.play.time()-1, kind)
		e := s.Timeline.Event(i)
		n += int64(countAlike(s.Timeline, &e))
	}
}

// TestAbove100 explains net savings above the whole on-demand bill, and has no share of
// them elsewhere.
func TestAbove100(t *testing.T) {
	v := sit(t, 120, 40)
	v.press("space", "t", "wed 14:00", "enter")
	base := &v.play.baseline.frame.Costs
	base.OutageCost = 3 * base.Bill
	saved, ok := v.play.saved(v.play.shown())
	if !ok || saved <= base.Bill {
		t.Fatalf("%v saved of %v, %v", saved, base.Bill, ok)
	}
	if got := partOf(saved, base.Bill) + share(saved, base.Bill); got != ">100%" {
		t.Errorf("the share is %q", got)
	}
	var text []string
	for _, section := range v.play.ofRun(v.play.shown()) {
		for _, i := range section.Items {
			text = append(text, i.Key+" "+i.Value)
		}
	}
	if all := strings.Join(text, "\n"); !strings.Contains(all, "above 100% on-demand paid ") {
		t.Errorf("the inspector does not explain it:\n%s", all)
	}
}

// TestNoOracleUnderBudgets: a closed gate lowers a bill, so that the bound on what serving
// all costs says nothing about what can be saved.
func TestNoOracleUnderBudgets(t *testing.T) {
	v := sit(t, 120, 40)
	v.press("3")
	if !strings.Contains(v.View(), "oracle ≤") {
		t.Fatalf("there is no oracle:\n%s", v.View())
	}
	v.play.baseline.gpuBudgets = append(v.play.baseline.gpuBudgets, timeline.BudgetInfo{})
	if s := v.View(); strings.Contains(s, "oracle ≤") || strings.Contains(s, "◁ oracle") || !strings.Contains(s, "no oracle under budgets") {
		t.Errorf("under a budget it shows:\n%s", s)
	}
}

// TestLossBudget shows what is left of the loss budget of the focused run next to the oracle where both
// fit, and alone where they do not.
func TestLossBudget(t *testing.T) {
	for _, c := range []struct {
		w, h   int
		budget timeline.LossBudget
		want   string
	}{
		{80, 24, timeline.LossBudget{Pools: 1, Left: 3_120_000}, "━ oracle ≤ +$180 (78%) · loss budget $3.12 left ━┓"},
		{80, 24, timeline.LossBudget{Pools: 1, UsedUp: 1}, "━ oracle ≤ +$180 (78%) · loss budget used up ━┓"},
		{80, 24, timeline.LossBudget{Pools: 3, UsedUp: 2}, "━ oracle ≤ +$180 (78%) · loss budget used up in 2 of 3 pools ━┓"},
		{120, 40, timeline.LossBudget{Pools: 1, Left: 3_120_000}, "━ loss budget $3.12 left ━┓"},
		{120, 40, timeline.LossBudget{Pools: 1, UsedUp: 1}, "━ oracle ≤ +$180 · loss budget used up ━┓"},
		{120, 40, timeline.LossBudget{}, "━ oracle ≤ +$180 (78%) ━┓"},
	} {
		v := sit(t, c.w, c.h)
		v.press("space", "3")
		v.play.shown().frame.LossBudget = c.budget
		if s := v.View(); !strings.Contains(s, c.want) {
			t.Errorf("at %dx%d with %+v it shows\n%s\nwant %q", c.w, c.h, c.budget, s, c.want)
		}
	}
}

// TestLossBudgetEvents says in a sentence what happened to the loss budget of a pool.
func TestLossBudgetEvents(t *testing.T) {
	for kind, want := range map[timeline.Kind]string{
		timeline.LossBudgetUsedUp:   "loss budget of web is used up: the pool moves to on-demand nodes",
		timeline.LossBudgetRestored: "loss budget of web covers losses again: the pool may hold Spot",
	} {
		if got := sentence(&inventory{}, &timeline.Event{Kind: kind, Subject: "web"}); got != want {
			t.Errorf("%s is %q, want %q", kind, got, want)
		}
	}
}
