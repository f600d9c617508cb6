package scenarios

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// feesOf returns the fees of the one pool of a scenario whose Scenario and EC2NodeClass have
// these fields more.
func feesOf(t *testing.T, fee, class string) (policy.NodeFees, []string) {
	t.Helper()
	sc, err := Parse("s.yaml", []byte(strings.Replace(fmt.Sprintf(ownNodePool, twoFamilies, class), "duration: 24h", "duration: 24h"+fee, 1)))
	if err != nil {
		t.Fatal(err)
	}
	w := boundOwn(t, sc)
	return w.Pools[0].Fees, w.Warnings
}

// TestFees: of every node the fee of the scenario, and the volumes of its class: those that it
// states, and those of the image that it does not replace.
func TestFees(t *testing.T) {
	monthly := func(dollars float64) policy.Money { return policy.Dollars(dollars / 730) }
	for _, x := range []struct {
		fee, class string
		want       policy.NodeFees
	}{
		{"", "amiSelectorTerms: [{alias: al2023@latest}]", policy.NodeFees{Volumes: monthly(1.60)}},
		{", nodeFee: 0.03", "amiFamily: Bottlerocket", policy.NodeFees{Fee: 30_000, Volumes: monthly(24 * 0.08)}},
		{", nodeFee: $7.30/month", "amiFamily: AL2023, blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 99.5Gi}}]",
			policy.NodeFees{Fee: 10_000, Volumes: monthly(8)}},
		{"", "amiFamily: AL2023, blockDeviceMappings: [{deviceName: /dev/xvdb, ebs: {volumeSize: 10Gi}}]",
			policy.NodeFees{Volumes: monthly(1.60 + 1)}},
		{"",
			"amiFamily: Bottlerocket, blockDeviceMappings: [{deviceName: /dev/xvdb, ebs: {volumeSize: 50Gi, volumeType: gp3, throughput: 225, iops: 4000}}]",
			policy.NodeFees{Volumes: monthly(54*0.08 + 100*0.04 + 1000*0.005)}},
		{"", "amiFamily: Custom, blockDeviceMappings: [{deviceName: /dev/sda1, ebs: {volumeSize: 8Gi, volumeType: io2, iops: 500}}]",
			policy.NodeFees{Volumes: monthly(1 + 32.5)}},
	} {
		if got, warnings := feesOf(t, x.fee, x.class); got != x.want {
			t.Errorf("%s, %s: the fees are %+v, want %+v\n%s", x.fee, x.class, got, x.want, strings.Join(warnings, "\n"))
		}
	}
}

// TestUnknownVolumes: what is in no bill is said.
func TestUnknownVolumes(t *testing.T) {
	for class, want := range map[string]string{
		"amiFamily: Custom": "which volumes its images have",
		"amiFamily: AL2023, blockDeviceMappings: [{deviceName: /dev/sdz, ebs: {snapshotID: snap-1}}]": "the size of volume /dev/sdz",
	} {
		if _, warnings := feesOf(t, "", class); !strings.Contains(strings.Join(warnings, "\n"), want) {
			t.Errorf("%s: no warning says %q: %s", class, want, warnings)
		}
	}
}

// TestFeesOfCapacityPool: a CapacityPool has the volumes of the class that it names, and without
// one no fees; a bind may replace what the scenario states.
func TestFeesOfCapacityPool(t *testing.T) {
	class := "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: %s}\nspec: {amiFamily: AL2023}"
	tr := fourDays(series("use1-az1", "m5.large", []policy.Time{0}, 40_000))
	fee := policy.Money(70_000)
	for _, x := range []struct {
		more string
		o    BindOptions
		want policy.NodeFees
	}{
		{fmt.Sprintf(class, "default"), BindOptions{}, policy.NodeFees{Volumes: 2192}},
		{fmt.Sprintf(class, "other"), BindOptions{}, policy.NodeFees{}},
		{"", BindOptions{NodeFee: &fee}, policy.NodeFees{Fee: fee}},
	} {
		w, err := Bind(parse(t, "{}", x.more), tr, x.o)
		if err != nil {
			t.Fatal(err)
		}
		if w.Pools[0].Fees != x.want {
			t.Errorf("%s: the fees are %+v, want %+v", x.more, w.Pools[0].Fees, x.want)
		}
	}
}
