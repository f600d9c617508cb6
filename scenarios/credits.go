package scenarios

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// A CreditMode is the behaviour of burstable types that have no CPU credits left.
type CreditMode string

// The modes. CreditsDefault is the default of AWS: standard for t2, unlimited for the others.
const (
	CreditsDefault   CreditMode = ""
	CreditsStandard  CreditMode = "standard"  // the CPU is throttled to the baseline
	CreditsUnlimited CreditMode = "unlimited" // CPU use above the baseline is charged
)

// readCredits reads the settings of a scenario for CPU use and burstable types.
func (sc *Scenario) readCredits(s *manifestSpec, doc *document) []error {
	var errs []error
	sc.CPUCredits = CreditMode(s.CPUCredits)
	if x := s.CPUUtilisation; x != nil {
		if sc.CPUUtilisation = *x; !(*x >= 0 && *x <= kube.CPUUtilisationMax) {
			errs = append(errs, doc.problem([]string{"spec", "cpuUtilisation"}, "%v is not from 0 to %d", *x,
				kube.CPUUtilisationMax))
		}
	}
	if !slices.Contains([]CreditMode{CreditsDefault, CreditsStandard, CreditsUnlimited}, sc.CPUCredits) {
		errs = append(errs, doc.problem([]string{"spec", "cpuCredits"}, "%q is not standard or unlimited", s.CPUCredits))
	}
	return errs
}

// meterCredits sets the CPU use of the pods of each template and the credit mode of each type, and
// warns of types whose terms are not modelled.
func (w *BoundScenario) meterCredits(sc *Scenario) {
	assumed := false
	for i := range w.Templates {
		t := &w.Templates[i]
		t.CPUUse = kube.CPUUse(t, sc.loads[i].utilisation, sc.CPUUtilisation)
		assumed = assumed || t.CPUUse > 0 && sc.loads[i].utilisation < 0
	}
	burstable := false
	var unmodelled []string
	for i := range w.Types {
		t := &w.Types[i]
		burstable = burstable || t.Credits.Baseline > 0
		if sc.CPUCredits != CreditsDefault && t.Credits.Baseline > 0 {
			t.Credits.Standard = sc.CPUCredits == CreditsStandard
		}
		if catalog.Unmodelled(t.Provider, t.Name) {
			unmodelled = append(unmodelled, t.Name)
		}
	}
	if assumed && burstable {
		w.Warnings = append(w.Warnings,
			fmt.Sprintf("burstable types: pods without %s are taken to use %g%% of the CPU that they request",
				kube.AnnotationCPU, 100*sc.CPUUtilisation))
	}
	if n := len(unmodelled); n > 0 {
		share := "instance type shares its processors"
		if n > 1 {
			share = "instance types share their processors"
		}
		w.Warnings = append(w.Warnings, fmt.Sprintf("%d %s, such as %s: CPU credits of such types are not modelled", n,
			share, unmodelled[0]))
	}
}
